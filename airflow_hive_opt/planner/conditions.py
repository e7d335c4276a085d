"""Conjuncts of ON and WHERE, with what the rules ask of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from airflow_hive_opt.planner.parse import span_of
from airflow_hive_opt.planner.query import ColumnRef, Condition, Operand
from airflow_hive_opt.planner.scope import Scope

# Functions whose value may differ between two runs of the same text. Time is among them, since
# the stages may run on either side of midnight.
NOT_DETERMINISTIC = re.compile(
    r"\b(?:current_date|current_timestamp|current_time|localtimestamp)\b"
    r"|\b(?:rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id"
    r"|spark_partition_id|input_file_name|input_file_block_start|input_file_block_length"
    r"|curdate|now|sysdate|getdate|unix_timestamp|reflect|reflect2|java_method"
    # which row they take depends on the order of rows
    r"|first|first_value|last|last_value|any_value|min_by|max_by|mode|collect_list|collect_set"
    r"|array_agg|listagg|string_agg|approx_percentile|percentile_approx|approx_count_distinct"
    r"|approx_top_k)\s*\(",
    re.IGNORECASE,
)
_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.NullSafeEQ: "<=>"}


def is_deterministic(text: str) -> bool:
    """Whether ``text`` names no function that may change from run to run.

    >>> is_deterministic("d.year = 2000"), is_deterministic("d.day = Current_Date")
    (True, False)
    """
    return NOT_DETERMINISTIC.search(text) is None


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The parts of ``node`` that AND joins, left to right, parentheses opened."""
    waiting = [node] if node is not None else []
    while waiting:
        part = waiting.pop()
        inner = part.unnest()
        if isinstance(inner, exp.And):
            waiting += [inner.expression, inner.this]
        else:
            yield part


def to_condition(node: exp.Expr, sql: str, scope: Scope) -> Condition:
    """The condition that a conjunct is; raises ``PlanError`` for unknown or ambiguous columns."""
    span = span_of(node)
    text = span.of(sql) if span else ""
    columns, complete = _columns(node, scope)
    inner = node.unnest()
    comparison = _COMPARISONS.get(type(inner))
    return Condition(
        text=text,
        columns=columns,
        deterministic=is_deterministic(text),
        self_contained=bool(text) and complete and not _positional(node),
        known_functions=node.find(exp.Anonymous) is None,
        comparison=comparison,
        operands=(_operand(inner.this, scope), _operand(inner.expression, scope))
        if comparison
        else None,
    )


def using_condition(left: ColumnRef, right: ColumnRef) -> Condition:
    """The equality that one column of USING stands for."""
    columns = frozenset({left, right})
    operands = (Operand(left, frozenset({left})), Operand(right, frozenset({right})))
    return Condition("", columns, True, False, True, "=", operands)


def _operand(node: exp.Expr, scope: Scope) -> Operand:
    bare = node.unnest()
    ref, itself = scope.resolve(bare) if isinstance(bare, exp.Column) else (None, False)
    return Operand(ref if itself else None, _columns(node, scope)[0])


def _columns(node: exp.Expr, scope: Scope) -> tuple[frozenset[ColumnRef], bool]:
    """The columns of this block in ``node``, and whether those are all it reads."""
    found = set()
    complete = True
    for part in node.walk(prune=lambda inner: isinstance(inner, exp.Query | exp.Lambda)):
        if isinstance(part, exp.Query | exp.Lambda | exp.Star) or (
            isinstance(part, exp.Column) and isinstance(part.this, exp.Star)
        ):
            complete = False
        elif isinstance(part, exp.Column):
            ref, _ = scope.resolve(part)
            if ref is not None:
                found.add(ref)
            # db.table.column means nothing once the table has another alias
            complete = complete and ref is not None and not part.args.get("db")
    return frozenset(found), complete


def _positional(node: exp.Expr) -> bool:
    return any(not mark.name for mark in node.find_all(exp.Placeholder))
