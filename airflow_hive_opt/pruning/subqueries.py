"""Subqueries: the equivalent joins of subqueries in WHERE, and the branches of UNION.

>>> from airflow_hive_opt.statement.parse import parse
>>> where = parse("SELECT 1 FROM s WHERE s.ds IN (SELECT ds FROM d WHERE y = 1)").args["where"]
>>> found = subquery_join(where.this)
>>> print(found.kind, found.comparison, plain_subquery(found.query).where)
LEFT SEMI = y = 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import is_deterministic
from airflow_hive_opt.pruning.query import JoinKind
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import span_of

_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.NullSafeEQ: ("<=>", "<=>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
# The clauses that a plain subquery may have: its rows are those of its FROM and WHERE.
_PLAIN = frozenset({"expressions", "from_", "where", "kind", "hint"})
# The expressions of a select list that returns one row for each row of FROM.
_VALUES = (
    *(exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Star, exp.Null, exp.Boolean),
    *(exp.Paren, exp.Cast, exp.DataType, exp.Add, exp.Sub, exp.Mul, exp.Neg),
)
_UNSTABLE = (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample, exp.Window)


@dataclass(frozen=True)
class SubqueryJoin:
    """A condition ``operands comparison (query)``; EXISTS has no operands.

    ``node`` is the query's node in the syntax tree, possibly in parentheses. ``scalar`` says that
    the query returns one row.
    """

    kind: JoinKind
    node: exp.Expr
    query: exp.Query
    comparison: str
    operands: tuple[exp.Expr, ...]
    scalar: bool = False


@dataclass(frozen=True)
class PlainSubquery:
    """``SELECT columns FROM factor WHERE where``; no ``columns`` unless all are bare."""

    factor: exp.Expr
    columns: tuple[exp.Column, ...]
    where: exp.Expr | None


def subquery_join(conjunct: exp.Expr) -> SubqueryJoin | None:
    """The semi or anti join that is equivalent to a conjunct of WHERE, or ``None``.

    NOT IN is not an anti join: a single NULL in its list drops every row.
    """
    node = conjunct.unnest()
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        query = node.args["query"]
        left = node.this.unnest() if not isinstance(node.this, exp.Tuple) else node.this
        operands = tuple(left.expressions) if isinstance(left, exp.Tuple) else (node.this,)
        return SubqueryJoin(JoinKind.LEFT_SEMI, query, query_in(query), "=", operands)
    negated = isinstance(node, exp.Not)
    exists = node.this.unnest() if negated else node
    if isinstance(exists, exp.Exists) and isinstance(exists.this, exp.Query):
        kind = JoinKind.LEFT_ANTI if negated else JoinKind.LEFT_SEMI
        return SubqueryJoin(kind, exists.this, query_in(exists.this), "=", ())
    if type(node) in _COMPARISONS:
        forward, backward = _COMPARISONS[type(node)]
        for mine, other, comparison in (
            (node.this, node.expression, forward),
            (node.expression, node.this, backward),
        ):
            if isinstance(other, exp.Subquery) and not isinstance(mine, exp.Subquery):
                query = query_in(other)
                # <=> can also be true if the query has no row, so it is not a semi join
                if comparison != "<=>":
                    return SubqueryJoin(
                        JoinKind.LEFT_SEMI, other, query, comparison, (mine,), scalar=True
                    )
    return None


def scalar_subqueries(conjunct: exp.Expr) -> list[exp.Subquery]:
    """The scalar subqueries of a conjunct, left to right, without those inside other queries."""
    walked = conjunct.walk(bfs=False, prune=lambda part: isinstance(part, exp.Query))
    return [part for part in walked if isinstance(part, exp.Subquery)]


def values_for(
    conjunct: exp.Expr, subqueries: Sequence[exp.Subquery], values: Sequence[exp.Expr] = ()
) -> exp.Expr:
    """A copy of the conjunct with a column of ``values`` in place of each subquery."""
    columns = values or [exp.column("value") for _ in subqueries]
    numbers = {id(node): number for number, node in enumerate(subqueries)}
    copy = conjunct.copy()
    for original, node in zip(list(conjunct.walk()), list(copy.walk())):
        if id(original) in numbers:
            node.replace(columns[numbers[id(original)]].copy())
    return copy


def plain_subquery(query: exp.Expr) -> PlainSubquery | None:
    """The parts of ``SELECT ... FROM one relation WHERE ...``; ``None`` for any other query."""
    if not isinstance(query, exp.Select) or {k for k, v in query.args.items() if v} - _PLAIN:
        return None
    factor = query.args["from_"].this if query.args.get("from_") else None
    where = query.args["where"].this if query.args.get("where") else None
    columns = tuple(node.unalias() for node in query.expressions)
    if factor is None or factor.args.get("joins") or any(map(_is_more, query.expressions)):
        return None
    if where is not None and where.find(exp.Query) is not None:
        return None
    bare = tuple(column for column in columns if isinstance(column, exp.Column))
    return PlainSubquery(factor, bare if len(bare) == len(columns) else (), where)


def union_branches(query: exp.Expr) -> tuple[exp.Select, ...]:
    """The branches of a UNION; one for a plain query, none for other forms."""
    if isinstance(query, exp.Select):
        return () if query.args.get("with_") else (query,)
    if isinstance(query, exp.Subquery) and not _modified(query):
        return union_branches(query.this)
    if isinstance(query, exp.Union) and not _modified(query) and not query.args.get("by_name"):
        left, right = union_branches(query.this), union_branches(query.expression)
        return left + right if left and right else ()
    return ()


def text_of(query: exp.Expr, sql: str) -> str:
    """The query's text without enclosing parentheses; empty if its position is not known."""
    span = span_of(query)
    if span is not None:
        return span.of(sql)
    parent = query.parent
    span = span_of(parent) if isinstance(parent, exp.Subquery) and not parent.alias else None
    return span.of(sql)[1:-1] if span is not None else ""


def is_stable(text: str, node: exp.Expr) -> bool:
    """Whether two reads of the query return the same rows, as far as its text tells."""
    return is_deterministic(text) and node.find(*_UNSTABLE) is None


def is_closed(query: exp.Expr) -> bool:
    """Whether every qualifier in the query names a relation inside it.

    An unqualified column of an outer query is not detected. If it is one, the query fails when it
    runs alone.
    """
    inside = {
        node.alias_or_name.lower()
        for node in query.find_all(exp.Table, exp.Subquery, exp.Values, exp.Lateral, exp.CTE)
    }
    columns = query.find_all(exp.Column)
    return all(not column.table or column.parts[0].name.lower() in inside for column in columns)


def has_positions(node: exp.Expr) -> bool:
    """Whether the node has ``?`` markers, whose values depend on their position."""
    return any(isinstance(mark, exp.Placeholder) and mark.this is None for mark in nodes(node))


def column_list(factor: exp.Expr) -> tuple[str, ...] | None:
    """The column names in ``AS q (a, b)``, or ``None`` without such a list."""
    alias = factor.args.get("alias")
    listed = alias.columns if isinstance(alias, exp.TableAlias) else ()
    return tuple(column.name.lower() for column in listed) or None


def query_in(node: exp.Expr) -> exp.Query:
    """The query inside parentheses."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return node  # type: ignore[return-value]


def _is_more(expression: exp.Expr) -> bool:
    """Whether the expression is not one value for each row: an aggregate, window or generator."""
    return any(not isinstance(part, _VALUES) for part in expression.walk())


def _modified(query: exp.Expr) -> bool:
    names = ("limit", "offset", "fetch", "with_", "joins", "pivots", "sample", "laterals")
    return any(query.args.get(name) for name in names)
