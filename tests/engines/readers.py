"""Each engine as a function that reads all rows of a scan's partitions, as tuples of Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from airflow_hive_opt.engines import arrow, datafusion, duckdb, polars
from airflow_hive_opt.engines.scan import PrunedScan


def by_duckdb(scan: PrunedScan) -> list[tuple[Any, ...]]:
    import duckdb as library

    with library.connect() as connection:
        connection.execute("SET TimeZone = 'America/New_York'")
        return tuples(duckdb.relation(connection, scan).to_arrow_table())


def by_arrow(scan: PrunedScan) -> list[tuple[Any, ...]]:
    return tuples(arrow.dataset(scan).to_table())


def by_polars(scan: PrunedScan) -> list[tuple[Any, ...]]:
    return tuples(polars.lazy_frame(scan).collect().to_arrow())


def by_datafusion(scan: PrunedScan) -> list[tuple[Any, ...]]:
    import datafusion as library

    context = library.SessionContext()
    datafusion.register(context, "fact", scan)
    return tuples(context.sql("SELECT * FROM fact").to_arrow_table())


READERS: dict[str, Callable[[PrunedScan], list[tuple[Any, ...]]]] = {
    "duckdb": by_duckdb,
    "arrow": by_arrow,
    "polars": by_polars,
    "datafusion": by_datafusion,
}


def tuples(table: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table, with instants in UTC."""
    assert table.column_names == ["id", "k", "n", "d", "m", "b", "ts"]
    return [tuple(map(_in_utc, row.values())) for row in table.to_pylist()]


def _in_utc(value: Any) -> Any:
    return value.astimezone(timezone.utc) if isinstance(value, datetime) else value
