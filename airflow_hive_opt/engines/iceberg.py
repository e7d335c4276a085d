"""PyIceberg: a row filter for scans and overwrites, and an upsert that reads what can match."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.engines.conditions import (
    And,
    Condition,
    IsBetween,
    Or,
    check_types,
    condition_of,
    with_columns,
)
from airflow_hive_opt.engines.installed import check_installed
from airflow_hive_opt.engines.merges import check_covered
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.values import Value, microseconds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

_CLASSES = {
    "boolean": bool,
    "int": int,
    "long": int,
    "string": str,
    "date": date,
    "timestamptz": datetime,
    "decimal": Decimal,
}


def row_filter(scan: PrunedScan, table: Table) -> BooleanExpression:
    """A ``row_filter`` for the table's ``scan``, or a filter of ``overwrite`` and ``delete``.

    Raises :class:`~airflow_hive_opt.engines.scan.EngineError`, also if a column of the table is of
    another type than its keys.
    """
    check_installed("pyiceberg")
    fields = {field.name.lower(): field for field in table.schema().fields}

    def named(column: str) -> str:
        if column.lower() not in fields:
            raise EngineError(f"the table {scan.table} has no column {column}")
        return fields[column.lower()].name

    condition = with_columns(condition_of(scan), named)
    check_types(scan, condition, lambda column: str(fields[column.lower()].field_type), _CLASSES)
    return _expression(condition)


def upsert(table: Table, rows: pa.Table, join_columns: Sequence[str], scan: PrunedScan) -> None:
    """Replaces the rows that equal one of ``rows`` in ``join_columns``, and adds the others.

    It reads and rewrites only what the keys of a MERGE's source allow, in one snapshot. ``scan`` is
    that of the MERGE's target. Raises :class:`~airflow_hive_opt.engines.scan.EngineError`, before
    anything is written, for rows that are not covered by the keys or equal each other.
    """
    condition = row_filter(scan, table)
    check_covered(scan, rows)
    names = list(join_columns)
    if rows.group_by(names).aggregate([]).num_rows < rows.num_rows:
        raise EngineError(f"rows to merge into {scan.table} equal each other in {', '.join(names)}")
    found = table.scan(row_filter=condition).to_arrow()
    kept = _without(found, rows, names)
    new = rows.select(found.column_names).cast(found.schema)
    import pyarrow as pa

    table.overwrite(pa.concat_tables([kept, new]), overwrite_filter=condition)


def _without(found: pa.Table, rows: pa.Table, names: list[str]) -> pa.Table:
    """The found rows that equal none of ``rows``; Arrow joins no nested columns."""
    import pyarrow as pa

    numbered = found.select(names).append_column("__row", pa.array(range(found.num_rows)))
    keys = rows.select(names).cast(found.select(names).schema)
    left = numbered.join(keys, names, join_type="left anti")
    return found.take(left.column("__row"))


def _expression(condition: Condition) -> BooleanExpression:
    from pyiceberg import expressions

    of: Any = expressions  # its arguments by position have no types
    if isinstance(condition, (And, Or)):
        if not condition.parts:
            return expressions.AlwaysFalse()
        parts = map(_expression, condition.parts)
        found: BooleanExpression = (of.And if isinstance(condition, And) else of.Or)(*parts)
        return found
    name = condition.column
    if isinstance(condition, IsBetween):
        low, high = _literal(condition.low), _literal(condition.high)
        found = of.And(of.GreaterThanOrEqual(name, low), of.LessThanOrEqual(name, high))
    else:
        found = of.In(name, set(map(_literal, condition.values)))
        found = of.Or(found, of.IsNull(name)) if condition.null else found
    return found


def _literal(value: Value) -> Any:
    """An instant in microseconds; PyIceberg converts it by the type of the column."""
    return microseconds(value) if isinstance(value, datetime) else value
