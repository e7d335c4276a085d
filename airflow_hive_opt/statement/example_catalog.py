"""A small catalog for the examples in the docstrings of the rules."""

from __future__ import annotations

from airflow_hive_opt.statement.catalog import Buckets, Column, JsonCatalog, Partition, Table


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "string") for name in names)


def _bucketed(name: str, count: int) -> Table:
    buckets = Buckets(("key",), count, (("key", "asc"),))
    return Table(name, _columns("key", "value"), total_bytes=5812, buckets=buckets)


CATALOG = JsonCatalog.of(
    [
        Table("default.src", _columns("key", "value"), total_bytes=5812),
        Table("default.src1", _columns("key", "value"), total_bytes=216),
        Table(
            "default.srcpart",
            _columns("key", "value"),
            _columns("ds", "hr"),
            partitions=tuple(
                Partition((day, hour), 5812)
                for day in ("2008-04-08", "2008-04-09")
                for hour in ("11", "12")
            ),
        ),
        _bucketed("default.b4", 4),
        _bucketed("default.b2", 2),
        Table("default.sales", _columns("item", "amount"), _columns("ds"), total_bytes=10**9),
        Table("default.days", _columns("ds", "year"), total_bytes=5812),
    ]
)
