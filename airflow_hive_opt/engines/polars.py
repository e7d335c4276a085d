"""Polars: a lazy frame of the partitions to read, and a predicate for other frames."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.engines.conditions import (
    And,
    Condition,
    IsBetween,
    Or,
    condition_of,
)
from airflow_hive_opt.engines.files import OpenPath, files_of, open_uri
from airflow_hive_opt.engines.installed import check_installed
from airflow_hive_opt.engines.scan import PrunedScan
from airflow_hive_opt.engines.values import DECIMAL

if TYPE_CHECKING:
    import polars as pl

_FILE = "__file"


def lazy_frame(scan: PrunedScan, open_path: OpenPath = open_uri, **options: Any) -> pl.LazyFrame:
    """The rows of the partitions to read, from their Parquet files, with the partition columns.

    ``options`` are those of ``polars.scan_parquet``, such as ``storage_options``. A TIMESTAMP
    column is an instant in UTC. Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("polars")
    import polars as pl

    listed = files_of(scan, open_path)
    files = listed.with_columns
    rows = pl.scan_parquet(
        [file.uri for file in files],
        **{
            "glob": False,
            "hive_partitioning": False,
            "include_file_paths": _FILE,
            "missing_columns": "insert",
            **options,
        },
    )
    names = [
        name for name in rows.collect_schema().names() if name.lower() not in (_FILE, *scan.columns)
    ]
    uris = pl.Series([file.uri for file in files], dtype=pl.String)
    # strict: a file that Polars gives another name than the list is an error, and no lost row
    values = [
        pl.col(_FILE)
        .replace_strict(uris, pl.Series([file.values[at] for file in files], dtype=_type(type_)))
        .alias(name)
        for at, (name, type_) in enumerate(zip(scan.columns, scan.types, strict=True))
    ]
    found = rows.select(*names, *values)
    return found if listed.files else found.clear()


def predicate(scan: PrunedScan) -> pl.Expr:
    """A predicate for frames of files that Polars opens itself.

    A TIMESTAMP partition column must be a Datetime without time zone there, a wall clock. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("polars")
    return _predicate(condition_of(scan))


def _predicate(condition: Condition) -> pl.Expr:
    import polars as pl

    if isinstance(condition, And):
        return reduce(and_, map(_predicate, condition.parts))
    if isinstance(condition, IsBetween):
        return pl.col(condition.column).is_between(pl.lit(condition.low), pl.lit(condition.high))
    if isinstance(condition, Or):
        return reduce(or_, map(_predicate, condition.parts), pl.lit(False))
    column = pl.col(condition.column)
    found = column.is_in(list(condition.values)) if condition.values else pl.lit(False)
    return found | column.is_null() if condition.null else found


def _type(type_: str) -> Any:
    import polars as pl

    if found := DECIMAL.fullmatch(type_):
        return pl.Decimal(int(found[1]), int(found[2]))
    if type_.startswith("varchar"):
        return pl.String
    return {
        "tinyint": pl.Int8,
        "smallint": pl.Int16,
        "int": pl.Int32,
        "bigint": pl.Int64,
        "boolean": pl.Boolean,
        "string": pl.String,
        "date": pl.Date,
        "timestamp": pl.Datetime("us", "UTC"),
    }[type_]
