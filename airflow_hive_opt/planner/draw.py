"""Operator trees as indented text."""

from __future__ import annotations

from airflow_hive_opt.planner.operators import (
    FileSink,
    Filter,
    GroupBy,
    Join,
    LateralView,
    Limit,
    Operator,
    PassedThrough,
    Select,
    TableScan,
    Union,
)
from airflow_hive_opt.planner.query import Condition


def draw(operator: Operator, depth: int = 0) -> str:
    """The tree, one operator a line, inputs below and two spaces further in."""
    lines = ["  " * depth + _label(operator)]
    lines.extend(draw(input_, depth + 1) for input_ in operator.inputs)
    return "\n".join(lines)


def _label(operator: Operator) -> str:
    match operator:
        case TableScan(relation):
            alias = f" {relation.alias}" if relation.aliased else ""
            return f"TS {relation.table.short_name}{alias}"
        case PassedThrough(relation):
            return f"(passed through) {relation.alias}".rstrip()
        case Filter(_, conditions):
            return f"FIL {_conditions(conditions)}"
        case Join(_, _, kind, conditions):
            return f"JOIN {kind}" + (f" ON {_conditions(conditions)}" if conditions else "")
        case LateralView(_, relation):
            return f"LVJ {relation.alias}"
        case GroupBy(_, keys):
            return "GBY" + (f" {', '.join(key.name or '?' for key in keys)}" if keys else "")
        case Select(_, _, windowed, subquery):
            name = f" as {subquery.alias}" if subquery else ""
            return f"SEL{name}" + (" with window functions" if windowed else "")
        case Limit():
            return "LIM"
        case Union(_, subquery):
            return f"UNION as {subquery.alias}"
        case FileSink(_, target):
            return f"FS {target}" if target else "FS"


def _conditions(conditions: tuple[Condition, ...]) -> str:
    return " AND ".join(
        " ".join(condition.text.split()) or " = ".join(sorted(map(str, condition.columns)))
        for condition in conditions
    )
