"""A small catalog and functions that show a rewriting, for the examples in docstrings."""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.rewriting.blocks import Block, Text
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.statement.catalog import JsonCatalog
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.settings import CORRELATION, Settings

_AMOUNT = ["amount", "decimal(15,2)"]
CATALOG = JsonCatalog.of_documents(
    {"name": name, "columns": columns, "partition_columns": partitioned, "total_bytes": size}
    for name, columns, partitioned, size in (
        ("sales", [["item", "int"], ["day", "date"], ["store", "int"], _AMOUNT], [], 10**9),
        ("items", [["item", "int"], ["kind", "string"]], [], 10**7),
        ("facts", [["item", "int"], ["amount", "int"]], [["day", "string"]], None),
        ("days", [["day", "string"], ["year", "int"]], [], None),
    )
)


def rewritten(
    sql: str, rule: Callable[[Block, Cost], list[Edit] | None], mode: str = "true"
) -> str:
    """``sql`` after one rewriting."""
    text = Text(sql, parse(sql), CATALOG)
    edits = rule(next(text.blocks()), Cost(Settings.of({CORRELATION: mode})))
    return spliced(sql, edits or [])


def without_join(sql: str, asked: str) -> str:
    """``sql`` without its join with ``days`` as ``d``, whose keys fulfil ``asked``."""
    text = Text(sql, parse(sql), CATALOG)
    scans = {
        alias: ScanRef(alias, factor.table.name, (at.start, at.stop), alias)
        for block in text.blocks()
        for alias, factor in block.factors.items()
        if (at := factor.reference) is not None and factor.table is not None
    }
    answered = RedundantJoin(scans["f"], scans["d"], (("day", "day"),), (asked,))
    return spliced(sql, eliminate_joins(text, [answered], [])[0])
