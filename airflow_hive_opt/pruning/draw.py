"""Prints operator trees as indented text."""

from __future__ import annotations

from airflow_hive_opt.pruning.operators import (
    FileSink,
    Filter,
    GroupBy,
    Join,
    LateralView,
    Operator,
    PassedThrough,
    Select,
    TableScan,
    Union,
)
from airflow_hive_opt.pruning.query import Condition


def draw(operator: Operator, depth: int = 0) -> str:
    """The tree with one operator on each line; inputs follow, indented by two more spaces."""
    lines = ["  " * depth + _label(operator)]
    lines.extend(draw(input_, depth + 1) for input_ in operator.inputs)
    return "\n".join(lines)


def _label(operator: Operator) -> str:
    if isinstance(operator, TableScan):
        alias = f" {operator.relation.alias}" if operator.relation.aliased else ""
        return f"TS {operator.relation.table.short_name}{alias}"
    if isinstance(operator, PassedThrough):
        return f"(passed through) {operator.relation.alias}".rstrip()
    if isinstance(operator, Filter):
        return f"FIL {_conditions(operator.conditions)}"
    if isinstance(operator, Join):
        on = f" ON {_conditions(operator.conditions)}" if operator.conditions else ""
        return f"JOIN {operator.kind}{on}"
    if isinstance(operator, LateralView):
        return f"LVJ {operator.relation.alias}"
    if isinstance(operator, GroupBy):
        keys = ", ".join(key.name or "?" for key in operator.keys)
        return f"GBY {keys}".rstrip()
    if isinstance(operator, Select):
        name = f" as {operator.subquery.alias}" if operator.subquery else ""
        return f"SEL{name}" + (" with window functions" if operator.windows is not None else "")
    if isinstance(operator, Union):
        return f"UNION as {operator.subquery.alias}"
    if isinstance(operator, FileSink):
        return f"FS {operator.target or ''}".rstrip()
    return "LIM"


def _conditions(conditions: tuple[Condition, ...]) -> str:
    return " AND ".join(
        " ".join(condition.text.split()) or " = ".join(sorted(map(str, condition.columns)))
        for condition in conditions
    )
