"""HiveQL after parsing: expressions, sources, query blocks, statements.

All objects are immutable and compare by structure, without their position in the text. Hive, too,
matches GROUP BY keys and join keys by comparing syntax trees.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce


def _position() -> int:
    return field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class Name:
    """A column name in the text: ``key``, ``a.key``, ``a.struct.field``; in lower case."""

    parts: tuple[str, ...]
    at: int = _position()


@dataclass(frozen=True)
class Constant:
    """A literal: ``text`` is its SQL text, ``type`` Hive's name of its type."""

    text: str
    type: str


@dataclass(frozen=True)
class Window:
    """OVER (...): its PARTITION BY, its ORDER BY and its frame."""

    partition_by: tuple[Expression, ...]
    order_by: tuple[tuple[Expression, str], ...]
    frame: str = ""


@dataclass(frozen=True)
class Call:
    """A function or an operator with its arguments.

    The name of an operator is its symbol or word (``=``, ``and``, ``isnull``, ``between``).
    ``note`` holds what is not an expression: the type of a cast, the name of a field.
    """

    name: str
    arguments: tuple[Expression, ...]
    at: int = _position()
    distinct: bool = False
    over: Window | None = None
    note: str = ""


@dataclass(frozen=True)
class Star:
    """``*`` or ``alias.*``."""

    qualifier: str | None = None
    at: int = _position()


@dataclass(frozen=True)
class Subquery:
    """A query inside an expression: in IN, in EXISTS or as a scalar."""

    query: Query
    at: int = _position()


# Python 3.9 has no typing.TypeAlias, but it does not evaluate the annotation.
Expression: typing.TypeAlias = "Name | Constant | Call | Star | Subquery | Column"


@dataclass(frozen=True)
class Column:
    """A column after resolution: its internal name in an operator's input."""

    name: str
    type: str = field(default="string", compare=False)
    partition: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class TableSource:
    """A table in FROM. ``sample`` is the text of TABLESAMPLE, or empty."""

    name: str
    alias: str
    at: int = _position()
    sample: str = ""


@dataclass(frozen=True)
class SubquerySource:
    """A subquery in FROM."""

    query: Query
    alias: str
    at: int = _position()


@dataclass(frozen=True)
class JoinSource:
    """A join in FROM; ``kind`` is INNER, LEFT OUTER, RIGHT OUTER, FULL OUTER or LEFT SEMI."""

    kind: str
    left: Source
    right: Source
    on: Expression | None
    at: int = _position()


@dataclass(frozen=True)
class LateralView:
    """LATERAL VIEW over a source."""

    source: Source
    call: Call
    alias: str
    columns: tuple[str, ...]
    at: int = _position()


Source = typing.Union[TableSource, SubquerySource, JoinSource, LateralView]


@dataclass(frozen=True)
class SelectItem:
    """One expression of a SELECT list and its aliases."""

    expression: Expression
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transform:
    """TRANSFORM, MAP or REDUCE ... USING 'script' AS ...: rows pass through a script."""

    script: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Destination:
    """The target of INSERT or CREATE TABLE AS; ``table`` is ``None`` for a directory.

    ``dynamic`` is the number of partition columns whose values come from the rows.
    """

    kind: str
    table: str | None
    dynamic: int = 0


@dataclass(frozen=True)
class Body:
    """One SELECT of a block, with all clauses after FROM. A multi-insert has several bodies."""

    items: tuple[SelectItem, ...]
    destination: Destination | None = None
    distinct: bool = False
    hints: tuple[tuple[str, tuple[str, ...]], ...] = ()
    transform: Transform | None = None
    where: Expression | None = None
    group_by: tuple[Expression, ...] = ()
    grouping_sets: int = 0
    having: Expression | None = None
    order_by: tuple[tuple[Expression, str], ...] = ()
    sort_by: tuple[tuple[Expression, str], ...] = ()
    distribute_by: tuple[Expression, ...] = ()
    cluster_by: tuple[Expression, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Block:
    """A FROM clause with its bodies. ``views`` are the WITH queries in scope."""

    source: Source | None
    bodies: tuple[Body, ...]
    views: tuple[tuple[str, Query], ...] = ()


@dataclass(frozen=True)
class Union:
    """UNION ALL of two queries."""

    left: Query
    right: Query


Query = typing.Union[Block, Union]


def with_views(query: Query, views: tuple[tuple[str, Query], ...]) -> Query:
    """Gives a block that has no WITH queries the WITH queries of the query around it."""
    return replace(query, views=views) if isinstance(query, Block) and not query.views else query


def joined(word: str, conditions: Sequence[Expression]) -> Expression:
    """Connects conditions by ``and`` or ``or``; there must be at least one."""
    return reduce(lambda left, right: Call(word, (left, right)), conditions)


def walk(expression: Expression) -> Iterator[Expression]:
    """Yields the expression and all its parts, but does not enter subqueries."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        if isinstance(found, Call):
            inside = list(found.arguments)
            if found.over:
                inside += [*found.over.partition_by, *(key for key, _ in found.over.order_by)]
            waiting.extend(reversed(inside))


def rewritten(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """Replaces the parts for which ``change`` returns another expression, outermost first."""
    found = change(expression)
    if found is not None or not isinstance(expression, Call):
        return expression if found is None else found
    arguments = tuple(rewritten(part, change) for part in expression.arguments)
    return replace(expression, arguments=arguments)


def conjuncts(expression: Expression | None) -> list[Expression]:
    """Splits a condition at AND and returns the conjuncts, left to right.

    >>> a, b = Name(("a",)), Name(("b",))
    >>> conjuncts(Call("and", (a, b))) == [a, b]
    True
    """
    found: list[Expression] = []
    waiting = [] if expression is None else [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.name == "and":
            waiting.extend(reversed(part.arguments))
        else:
            found.append(part)
    return found
