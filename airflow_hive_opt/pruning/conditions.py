"""Conjuncts of ON and WHERE, with the properties that the rules need.

These are sqlglot's expressions. Hive's compiler has its own syntax tree, ``hive.parser.syntax``,
with its own ``conjuncts``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef, Condition, Operand
from airflow_hive_opt.pruning.scope import Scope
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span, span_of

# Functions whose value may differ between two runs of the same text. They include the current
# time and date, since midnight may pass between the two stages.
NOT_DETERMINISTIC = re.compile(
    r"\b(?:current_date|current_timestamp|current_time|localtimestamp)\b"
    r"|\b(?:rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id"
    r"|spark_partition_id|input_file_name|input_file_block_start|input_file_block_length"
    r"|curdate|now|sysdate|getdate|unix_timestamp|reflect|reflect2|java_method"
    # the result depends on the order of rows
    r"|first|first_value|last|last_value|any_value|min_by|max_by|mode|collect_list|collect_set"
    r"|array_agg|listagg|string_agg|approx_percentile|percentile_approx|approx_count_distinct"
    r"|approx_top_k)\s*\("
    # typed literals whose value depends on the current date
    r"|\b(?:date|timestamp\w*)\s*'\s*(?:now|today|tomorrow|yesterday)",
    re.IGNORECASE,
)
_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "=", exp.NullSafeEQ: "<=>"}
_NOT_TRUE_OF_NULL = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.Like)
# exp.Any is any(), an aggregate in Spark; exp.Anonymous may be the user's own aggregate.
AGGREGATES = (exp.AggFunc, exp.Any)
_NOT_OF_ONE_ROW = (*AGGREGATES, exp.Window, exp.UDTF, exp.Explode, exp.Anonymous)
# Expressions that are NULL whenever one of their arguments is NULL.
_STRICT = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Cast, exp.TryCast),
    *(exp.Upper, exp.Lower, exp.Substring, exp.Length, exp.Year, exp.Month, exp.Day),
)


def is_deterministic(text: str) -> bool:
    """Whether ``text`` names no function that may change from run to run.

    >>> is_deterministic("d.year = 2000"), is_deterministic("d.day = Current_Date")
    (True, False)
    """
    return NOT_DETERMINISTIC.search(text) is None


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conjuncts of ``node``, left to right, also those inside parentheses."""
    waiting = [node] if node is not None else []
    while waiting:
        part = waiting.pop()
        inner = part.unnest()
        if isinstance(inner, exp.And):
            waiting += [inner.expression, inner.this]
        else:
            yield part


def to_condition(node: exp.Expr, sql: str, scope: Scope) -> Condition:
    """Makes a condition of a conjunct; raises ``PlanError`` for unknown or ambiguous columns."""
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
        null_rejecting=is_null_rejecting(inner),
        sql=qualified(node, sql, scope),
    )


def equality(left: ColumnRef, right: ColumnRef) -> Condition:
    """The condition ``left = right`` for a column of USING."""
    columns = frozenset({left, right})
    operands = (Operand(left, frozenset({left})), Operand(right, frozenset({right})))
    text = f"{_quoted(left)} = {_quoted(right)}"
    return Condition(text, columns, True, True, True, "=", operands, null_rejecting=True, sql=text)


def compared_with(
    node: exp.Expr, comparison: str, right: ColumnRef, sql: str, scope: Scope
) -> Condition:
    """The condition ``node comparison right``, where ``right`` is a column of a subquery."""
    columns, complete = _columns(node, scope)
    left = qualified(node, sql, scope)
    text = f"{left} {comparison} {_quoted(right)}"
    return Condition(
        text,
        columns | {right},
        deterministic=is_deterministic(left),
        self_contained=bool(left) and complete and not _positional(node),
        known_functions=node.find(exp.Anonymous) is None,
        comparison=comparison if comparison in _COMPARISONS.values() else None,
        operands=(_operand(node, scope), Operand(right, frozenset({right}))),
        null_rejecting=comparison != "<=>" and _is_strict(node.unnest()),
        sql=text,
    )


def qualified(
    node: exp.Expr, sql: str, scope: Scope, instead: Mapping[Span, str] | None = None
) -> str:
    """The node's text with every column qualified; empty if its position is not known.

    ``instead`` are texts that replace parts of the statement inside the node.
    """
    span = span_of(node)
    if span is None:
        return ""
    edits = [(part.start, part.stop, text) for part, text in (instead or {}).items()]
    for column in own_columns(node):
        ref, _ = scope.resolve(column)
        first = column.parts[0]
        bare = not column.table or first.name.lower() != (ref.alias if ref else "")
        if ref is not None and bare and "start" in first.meta:
            start = first.meta["start"]
            edits.append((start, start, f"{quote(ref.alias)}."))
    text, end = "", span.start
    for start, stop, new in sorted(edits):
        text += sql[end:start] + new
        end = stop
    return text + sql[end : span.stop]


def own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without those inside subqueries and lambdas."""
    for found in node.walk(prune=lambda part: isinstance(part, (exp.Query, exp.Lambda))):
        if isinstance(found, exp.Column) and not isinstance(found.this, exp.Star):
            yield found


def _quoted(column: ColumnRef) -> str:
    return f"{quote(column.alias)}.{quote(column.name)}"


def is_null_rejecting(node: exp.Expr) -> bool:
    """Whether the condition is never true if all columns of one of its relations are NULL."""
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        return isinstance(node.this.expression, exp.Null) and _is_strict(node.this.this)
    if isinstance(node, exp.In):
        # x IN (NULL, 5) is true of x = 5, so only the left side tells
        constant = not any(item.find(exp.Column, exp.Query) for item in node.expressions)
        return bool(node.expressions) and constant and _is_strict(node.this)
    return isinstance(node, _NOT_TRUE_OF_NULL) and all(map(_is_strict, node.iter_expressions()))


def _is_strict(node: exp.Expr) -> bool:
    """Whether the value is NULL if any column in it is NULL."""
    if isinstance(node, exp.Column):
        return not isinstance(node.this, exp.Star)
    if isinstance(node, (exp.Literal, exp.Placeholder, exp.DataType, exp.Boolean)):
        return True
    return isinstance(node, _STRICT) and all(map(_is_strict, node.iter_expressions()))


def is_self_contained(node: exp.Expr, scope: Scope) -> bool:
    """Whether an expression reads only columns of this block and has no aggregate or window.

    Generators and functions that the parser does not know are not self-contained either.
    """
    if node.find(*_NOT_OF_ONE_ROW) is not None:
        return False
    return _columns(node, scope)[1] and not _positional(node)


def _operand(node: exp.Expr, scope: Scope) -> Operand:
    bare = node.unnest()
    ref, itself = scope.resolve(bare) if isinstance(bare, exp.Column) else (None, False)
    return Operand(ref if itself else None, _columns(node, scope)[0])


def _columns(node: exp.Expr, scope: Scope) -> tuple[frozenset[ColumnRef], bool]:
    """The columns of this block in ``node``, and whether ``node`` reads nothing else."""
    found = set()
    complete = True
    for part in node.walk(prune=lambda inner: isinstance(inner, (exp.Query, exp.Lambda))):
        if isinstance(part, (exp.Query, exp.Lambda, exp.Star)) or (
            isinstance(part, exp.Column) and isinstance(part.this, exp.Star)
        ):
            complete = False
        elif isinstance(part, exp.Column):
            ref, _ = scope.resolve(part)
            if ref is not None:
                found.add(ref)
            # db.table.column can't be resolved if the table gets another alias
            complete = complete and ref is not None and not part.args.get("db")
    return frozenset(found), complete


def _positional(node: exp.Expr) -> bool:
    return any(mark.this is None for mark in node.find_all(exp.Placeholder))
