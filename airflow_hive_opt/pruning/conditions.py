"""Conjuncts of ON and WHERE, with the properties that the rules need.

These are sqlglot's expressions. Hive's compiler has its own syntax tree, ``hive.parser.syntax``,
with its own ``conjuncts``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from airflow_hive_opt.pruning.query import ColumnRef, Condition, Operand, Pieces, pieces_of
from airflow_hive_opt.pruning.scope import Scope
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.nodes import nodes
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
    r"|\b(?:date|timestamp\w*)\s*r?['\"]\s*(?:now|today|tomorrow|yesterday)",
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


class Qualified(NamedTuple):
    """The text of an expression with every column qualified, and its pieces."""

    sql: str
    pieces: Pieces


def is_deterministic(text: str) -> bool:
    """Whether ``text`` names no function that may change from run to run.

    >>> is_deterministic("d.year = 2000"), is_deterministic("d.day = Current_Date")
    (True, False)
    >>> is_deterministic('d.day = DATE "today"')
    False
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


def conditions_of(node: exp.Expr | None, sql: str, scope: Scope) -> tuple[Condition, ...]:
    """The conjuncts of ON or WHERE; an OR among them has its branches."""
    found = ((part, to_condition(part, sql, scope)) for part in conjuncts(node))
    return tuple(
        replace(condition, branches=_branches(part, sql, scope))
        if isinstance(part.unnest(), exp.Or)
        else condition
        for part, condition in found
    )


def _branches(node: exp.Expr, sql: str, scope: Scope) -> tuple[tuple[Condition, ...], ...]:
    """The conjuncts of each branch of an OR, left to right."""
    found: list[tuple[Condition, ...]] = []
    waiting = [node]
    while waiting:
        branch = waiting.pop()
        inner = branch.unnest()
        if isinstance(inner, exp.Or):
            waiting += [inner.expression, inner.this]
        else:
            parts = conjuncts(inner)
            found.append(tuple(to_condition(part, sql, scope, part_of_or=True) for part in parts))
    return tuple(found)


def to_condition(node: exp.Expr, sql: str, scope: Scope, part_of_or: bool = False) -> Condition:
    """Makes a condition of a conjunct; raises ``PlanError`` for unknown or ambiguous columns.

    With ``part_of_or``, its comparison and operands are left out, which costs less: they have no
    meaning for a part of an OR.
    """
    check_budget()
    span = span_of(node)
    text = span.of(sql) if span else ""
    read = _read(node, scope)
    inner = node.unnest()
    comparison = None if part_of_or else _COMPARISONS.get(type(inner))
    named = _qualified(span, sql, read)
    return Condition(
        text=text,
        columns=read.references,
        deterministic=is_deterministic(text),
        self_contained=bool(text) and read.complete and not read.positional,
        known_functions=not read.unknown_function,
        comparison=comparison,
        operands=(_operand(inner.this, scope), _operand(inner.expression, scope))
        if comparison
        else None,
        null_rejecting=is_null_rejecting(inner),
        sql=named.sql,
        pieces=named.pieces,
    )


def equality(left: ColumnRef, right: ColumnRef) -> Condition:
    """The condition ``left = right`` for a column of USING."""
    columns = frozenset({left, right})
    operands = (Operand(left, frozenset({left})), Operand(right, frozenset({right})))
    text = f"{_quoted(left)} = {_quoted(right)}"
    return Condition(
        text,
        columns,
        deterministic=True,
        self_contained=True,
        known_functions=True,
        comparison="=",
        operands=operands,
        null_rejecting=True,
        sql=text,
        pieces=(left, " = ", right),
    )


def compared_with(
    node: exp.Expr, comparison: str, right: ColumnRef, sql: str, scope: Scope
) -> Condition:
    """The condition ``node comparison right``, where ``right`` is a column of a subquery."""
    read = _read(node, scope)
    left, pieces = _qualified(span_of(node), sql, read)
    text = f"{left} {comparison} {_quoted(right)}"
    return Condition(
        text,
        read.references | {right},
        deterministic=is_deterministic(left),
        self_contained=bool(left) and read.complete and not read.positional,
        known_functions=not read.unknown_function,
        comparison=comparison if comparison in _COMPARISONS.values() else None,
        operands=(_operand(node, scope), Operand(right, frozenset({right}))),
        null_rejecting=comparison != "<=>" and is_strict(node.unnest()),
        sql=text,
        pieces=(*pieces, f" {comparison} ", right) if pieces else (),
    )


def qualified(
    node: exp.Expr, sql: str, scope: Scope, instead: Mapping[Span, ColumnRef] | None = None
) -> Qualified:
    """The node's text with every column qualified; empty if its position is not known.

    ``instead`` are columns that replace parts of the statement inside the node.
    """
    return _qualified(span_of(node), sql, _read(node, scope), instead)


def _qualified(
    span: Span | None, sql: str, read: _Read, instead: Mapping[Span, ColumnRef] | None = None
) -> Qualified:
    if span is None:
        return Qualified("", ())
    found = [(part.start, part.stop, _quoted(ref), ref) for part, ref in (instead or {}).items()]
    split = True
    for column, ref in read.columns:
        first, *others = column.parts
        bare = not others or first.name.lower() != (ref.alias if ref else "")
        last = first if bare else others[0]
        if ref is None or "start" not in first.meta or "end" not in last.meta:
            split = False
            continue
        start, stop = first.meta["start"], last.meta["end"] + 1
        prefix = f"{quote(ref.alias)}." if bare else ""
        found.append((start, stop, prefix + sql[start:stop], ref))
    text: list[str] = []
    pieces: list[str | ColumnRef] = []
    end = span.start
    for start, stop, new, ref in sorted(found, key=lambda each: each[:2]):
        text += (sql[end:start], new)
        pieces += (sql[end:start], ref)
        end = stop
    rest = sql[end : span.stop]
    return Qualified("".join([*text, rest]), pieces_of([*pieces, rest]) if split else ())


def own_columns(node: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without those inside subqueries and lambdas."""
    for found in nodes(node, stop=(exp.Query, exp.Lambda)):
        if isinstance(found, exp.Column) and not isinstance(found.this, exp.Star):
            yield found


def _quoted(column: ColumnRef) -> str:
    return f"{quote(column.alias)}.{quote(column.name)}"


def is_null_rejecting(node: exp.Expr) -> bool:
    """Whether the condition is never true if all columns of one of its relations are NULL."""
    if isinstance(node, exp.Not) and isinstance(node.this, exp.Is):
        return isinstance(node.this.expression, exp.Null) and is_strict(node.this.this)
    if isinstance(node, exp.In):
        # x IN (NULL, 5) is true of x = 5, so only the left side tells
        constant = not any(item.find(exp.Column, exp.Query) for item in node.expressions)
        return bool(node.expressions) and constant and is_strict(node.this)
    return isinstance(node, _NOT_TRUE_OF_NULL) and all(map(is_strict, node.iter_expressions()))


def is_strict(node: exp.Expr) -> bool:
    """Whether the value is NULL if any column in it is NULL."""
    if isinstance(node, exp.Column):
        return not isinstance(node.this, exp.Star)
    if isinstance(node, (exp.Literal, exp.Placeholder, exp.DataType, exp.Boolean)):
        return True
    return isinstance(node, _STRICT) and all(map(is_strict, node.iter_expressions()))


def is_self_contained(node: exp.Expr, scope: Scope) -> bool:
    """Whether an expression reads only columns of this block and has no aggregate or window.

    Generators and functions that the parser does not know are not self-contained either.
    """
    if node.find(*_NOT_OF_ONE_ROW) is not None:
        return False
    read = _read(node, scope)
    return read.complete and not read.positional


def _operand(node: exp.Expr, scope: Scope) -> Operand:
    bare = node.unnest()
    if isinstance(bare, exp.Column) and not isinstance(bare.this, exp.Star):
        ref, itself = scope.resolve(bare)
        columns = frozenset[ColumnRef]() if ref is None else frozenset({ref})
        return Operand(ref if itself else None, columns)
    return Operand(None, _read(node, scope).references)


class _Read(NamedTuple):
    """What an expression reads.

    ``columns`` are its own columns, without those inside subqueries and lambdas, each with the
    column of the block to which it refers. ``complete`` says that it reads nothing else.
    ``positional`` and ``unknown_function`` say whether it has a ``?`` marker, and a function that
    the parser does not know, anywhere.
    """

    columns: tuple[tuple[exp.Column, ColumnRef | None], ...]
    complete: bool
    positional: bool
    unknown_function: bool

    @property
    def references(self) -> frozenset[ColumnRef]:
        """The columns of this block."""
        return frozenset(ref for _, ref in self.columns if ref is not None)


def _read(node: exp.Expr, scope: Scope) -> _Read:
    """What the expression reads, in one walk; raises ``PlanError`` for unknown columns."""
    columns: list[tuple[exp.Column, ColumnRef | None]] = []
    inside: list[exp.Expr] = []
    complete, positional, unknown_function = True, False, False
    for part in nodes(node, stop=(exp.Query, exp.Lambda)):
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            ref, _ = scope.resolve(part)
            columns.append((part, ref))
            # db.table.column can't be resolved if the table gets another alias
            complete = complete and ref is not None and not part.args.get("db")
        elif isinstance(part, (exp.Query, exp.Lambda)):
            inside.append(part)
        elif isinstance(part, (exp.Column, exp.Star)):
            complete = False
        elif isinstance(part, exp.Placeholder):
            positional = positional or part.this is None
        elif isinstance(part, exp.Anonymous):
            unknown_function = True
    for part in inside:
        positional = positional or any(m.this is None for m in part.find_all(exp.Placeholder))
        unknown_function = unknown_function or part.find(exp.Anonymous) is not None
    complete = complete and not inside
    return _Read(tuple(columns), complete, positional, unknown_function)
