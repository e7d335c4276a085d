"""The columns that a SELECT returns: the names that Spark gives them, and the order of ``*``.

>>> from airflow_hive_opt.statement.parse import parse
>>> listed = parse("SELECT ds, d.k, x AS y, CAST(z AS int), count(*), 'v', s.a[0].b FROM d")
>>> [output_name(node) for node in listed.expressions]
['ds', 'k', 'y', 'z', '()', 'v', '*']
>>> output_name(parse("SELECT CAST(s.f AS int) FROM d").expressions[0])
'()'
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sqlglot import exp

from airflow_hive_opt.pruning.query import (
    ColumnRef,
    JoinKind,
    Projection,
    Relation,
    SubqueryRelation,
)
from airflow_hive_opt.statement.identifiers import quote

# The name of a column that Spark calls by its expression, such as count(1). Such names never look
# like a plain identifier.
GENERATED = "()"
# Any number of columns that are not known.
UNKNOWN = Projection("*", None, frozenset())
# Table functions, and functions that the parser does not know, may return several columns.
_SEVERAL_COLUMNS = (
    *(exp.Star, exp.Aliases, exp.Explode, exp.Inline, exp.Stack, exp.UDTF, exp.Anonymous),
)
_EXPRESSIONS = (
    *(exp.Func, exp.Binary, exp.Unary, exp.Predicate, exp.Window, exp.Bracket, exp.Interval),
    *(exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Tuple, exp.Subquery),
)
_PLAIN = re.compile(r"[^\W\d]\w*")
_NO_RIGHT_SIDE = (JoinKind.LEFT_SEMI, JoinKind.LEFT_ANTI)


def output_name(node: exp.Expr) -> str:
    """The name of a select list's column in lower case.

    It is ``()`` if Spark makes the name from the expression's text. It is ``*`` if the name or the
    number of columns is not known.
    """
    if isinstance(node, (exp.Alias, exp.Subquery)) and node.alias:
        return node.alias.lower()
    inner = node if isinstance(node, exp.Subquery) else node.unnest()
    if isinstance(inner, _SEVERAL_COLUMNS):
        return UNKNOWN.name
    if isinstance(inner, exp.Cast) and isinstance(inner.this.unnest(), exp.Column):
        column = inner.this.unnest()
        if column.table and column.table.lower() not in _aliases(column):
            return GENERATED  # a field of a struct
        inner = column  # Spark gives a cast the name of its column
    if isinstance(inner, (exp.Column, exp.Boolean, exp.Null)):
        return (inner.name or inner.sql()).lower()
    if isinstance(inner, exp.Literal):
        return inner.name.lower() if _PLAIN.fullmatch(inner.name) else GENERATED
    named_by_text = isinstance(inner, _EXPRESSIONS) and not isinstance(inner, exp.Dot)
    return GENERATED if named_by_text else UNKNOWN.name


def _aliases(column: exp.Expr) -> set[str]:
    """The names in lower case by which the column's block calls its relations."""
    select = column.find_ancestor(exp.Select)
    if select is None:
        return set()
    joins = [join.this for join in select.args.get("joins") or ()]
    factors = [*joins, *(select.args.get("laterals") or ())]
    if from_ := select.args.get("from_"):
        factors.append(from_.this)
    return {factor.alias_or_name.lower() for factor in factors}


def may_be_generated(name: str, columns: Collection[str]) -> bool:
    """Whether ``name`` may be one of the ``columns`` that Spark names after expressions."""
    return not is_plain(name) and GENERATED in columns


def is_plain(name: str) -> bool:
    """Whether the name can't be one that Spark makes of an expression."""
    return _PLAIN.fullmatch(name) is not None


def relation_columns(relation: Relation) -> tuple[str, ...] | None:
    """The column names of a relation in order, or ``None`` if they are not known."""
    if isinstance(relation, SubqueryRelation):
        return None if UNKNOWN.name in relation.columns else relation.columns
    # A metastore's entry of a lake table may have no columns: only the format's catalog knows them.
    return relation.columns or None


def columns_of(relation: Relation) -> tuple[Projection, ...]:
    """The columns of ``SELECT alias.*``."""
    names = relation_columns(relation)
    return (UNKNOWN,) if names is None else tuple(_column(relation.alias, name) for name in names)


def joined(
    left: Sequence[Projection], right: Relation, kind: JoinKind, using: Sequence[str]
) -> tuple[Projection, ...]:
    """The columns of ``SELECT *`` after a join.

    The columns of USING come first, then the others of the left side and of the right side.
    """
    own = () if kind in _NO_RIGHT_SIDE else columns_of(right)
    if not using:
        return (*left, *own)
    keys = []
    for name in using:
        mine = sole(left, name)
        other = mine if kind in _NO_RIGHT_SIDE else sole(own, name)
        if mine is None or other is None:
            return (UNKNOWN,)
        if kind is JoinKind.FULL_OUTER:  # the value may come from either side
            keys.append(Projection(name, None, mine.columns | other.columns))
        else:
            keys.append(other if kind is JoinKind.RIGHT_OUTER else mine)
    others = [each for each in (*left, *own) if each.name not in using]
    return (*keys, *others)


def sole(columns: Sequence[Projection], name: str) -> Projection | None:
    """The column ``name``; ``None`` if another column may have that name.

    Of several columns of that name, USING takes the first.
    """
    names = [each.name for each in columns]
    if names.count(name) != 1 or UNKNOWN.name in names or may_be_generated(name, names):
        return None
    return columns[names.index(name)]


def unchanged(name: str, column: ColumnRef) -> Projection:
    """The output column ``name`` that returns ``column`` as it is."""
    text = f"{quote(column.alias)}.{quote(column.name)}"
    return Projection(name, column, frozenset({column}), text, (column,), strict=True)


def _column(alias: str, name: str) -> Projection:
    if name == GENERATED:
        return Projection(name, None, frozenset())
    ref = ColumnRef(alias, name)
    return unchanged(name, ref)
