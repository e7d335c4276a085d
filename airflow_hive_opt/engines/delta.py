"""delta-rs: a predicate for reads, file lists and deletes, and one for merges."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from airflow_hive_opt.engines import datafusion
from airflow_hive_opt.engines.conditions import check_types, condition_of, with_columns
from airflow_hive_opt.engines.installed import check_installed
from airflow_hive_opt.engines.merges import check_covered
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.sql import quoted, sql_of

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

_CLASSES = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "string": str,
    "date": date,
    "timestamp": datetime,
    "decimal": Decimal,
}


def predicate(scan: PrunedScan, table: DeltaTable, alias: str = "") -> str:
    """A predicate for ``table.scan`` and ``table.delete``, and for ``file_pruning_predicate``.

    ``alias`` qualifies the columns. Raises :class:`~airflow_hive_opt.engines.scan.EngineError`,
    also if a column of the table is of another type than its keys.
    """
    check_installed("deltalake")
    fields = {field.name.lower(): field for field in table.schema().fields}

    def named(column: str) -> str:
        if column.lower() not in fields:
            raise EngineError(f"the table {scan.table} has no column {column}")
        return str(fields[column.lower()].name)

    def stored(column: str) -> str:
        type_ = fields[column.lower()].type
        return str(getattr(type_, "type", type_))

    condition = with_columns(condition_of(scan), named)
    check_types(scan, condition, stored, _CLASSES)
    prefix = f"{quoted(alias)}." if alias else ""
    return sql_of(condition, datafusion.literal, lambda name: prefix + quoted(name))


def merge_predicate(
    on: str, scan: PrunedScan, table: DeltaTable, rows: pa.Table, target_alias: str
) -> str:
    """The predicate of ``table.merge``: ``on``, and the keys of the MERGE's source as literals.

    ``scan`` is that of the MERGE's target, ``rows`` the source. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`, also for rows with other keys.
    """
    check_covered(scan, rows)
    return f"({on}) AND {predicate(scan, table, target_alias)}"
