"""Writes a condition over other columns: those below a SELECT, or equal ones elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import is_null_rejecting, own_columns
from airflow_hive_opt.pruning.query import ColumnRef, Condition, Operand, Projection
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import parse

_PREFIX = "SELECT "


def substituted(condition: Condition, by: Mapping[ColumnRef, Projection]) -> Condition | None:
    """The condition with every column replaced by its expression in ``by``.

    ``None`` if the condition depends on more than its columns, or if a column has no expression.

    >>> y = ColumnRef("t", "y")
    >>> below = Projection("y", None, frozenset({ColumnRef("d", "d")}), "year(d.d)")
    >>> found = Condition("y > 1", frozenset({y}), True, True, True, sql="`t`.y > 1")
    >>> substituted(found, {y: below}).sql
    '(year(d.d)) > 1'
    """
    used = [by[column] for column in condition.columns if column in by and by[column].sql]
    if len(used) < len(condition.columns) or not used or not condition.usable or not condition.sql:
        return None
    text = _spliced(condition.sql, by)
    node = _parsed(text) if text is not None else None
    if text is None or node is None:
        return None
    operands = condition.operands
    return replace(
        condition,
        text=text,
        sql=text,
        columns=frozenset().union(*(found.columns for found in used)),
        operands=(_operand(operands[0], by), _operand(operands[1], by)) if operands else None,
        null_rejecting=condition.null_rejecting and is_null_rejecting(node.unnest()),
    )


def _spliced(sql: str, by: Mapping[ColumnRef, Projection]) -> str | None:
    node = _parsed(sql)
    if node is None:
        return None
    edits: dict[int, tuple[int, str]] = {}
    for column in own_columns(node):
        if len(column.parts) < 2:
            return None
        alias, name = column.parts[:2]
        found = by.get(ColumnRef(alias.name.lower(), name.name.lower()))
        if found is None or "start" not in alias.meta or "end" not in name.meta:
            return None
        start, stop = alias.meta["start"] - len(_PREFIX), name.meta["end"] + 1 - len(_PREFIX)
        edits[start] = (stop, found.sql if found.column else f"({found.sql})")
    text, end = "", 0
    for start, (stop, instead) in sorted(edits.items()):
        text += sql[end:start] + instead
        end = stop
    return text + sql[end:]


def _parsed(sql: str) -> exp.Expr | None:
    try:
        found: list[exp.Expr] = parse(f"{_PREFIX}{sql}").expressions
    except PlanError:
        return None
    return found[0] if len(found) == 1 else None


def _operand(operand: Operand, by: Mapping[ColumnRef, Projection]) -> Operand:
    columns = frozenset().union(*(by[column].columns for column in operand.columns))
    return Operand(by[operand.column].column if operand.column else None, columns)


def as_projection(column: ColumnRef) -> Projection:
    """The column as an expression."""
    text = f"{quote(column.alias)}.{quote(column.name)}"
    return Projection(column.name, column, frozenset({column}), text)
