"""A statement after name resolution: its query blocks, their relations and conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Union

from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.text_enum import StrEnum


@dataclass(frozen=True)
class ColumnRef:
    """A column of one relation of the block; alias and name are in lower case."""

    alias: str
    name: str

    def __str__(self) -> str:
        return f"{self.alias}.{self.name}"


Pieces = tuple[Union[str, ColumnRef], ...]
"""The text of an expression, split at its columns; empty if it can't be split."""


def pieces_of(parts: Iterable[str | ColumnRef]) -> Pieces:
    """The parts in order; adjacent texts become one text."""
    found: list[str | ColumnRef] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part:
            found.append(part)
    return tuple(found)


@dataclass(frozen=True)
class Operand:
    """One side of a comparison: a bare ``column``, or an expression over ``columns``."""

    column: ColumnRef | None
    columns: frozenset[ColumnRef]


@dataclass(frozen=True)
class Condition:
    """One conjunct of ON or WHERE, as the user wrote it.

    - ``comparison`` is ``=``, ``<=>``, or ``None`` for any other form.
    - ``operands`` are the two sides of a comparison.
    - ``self_contained`` says that the text means the same wherever its columns are in scope: it has
      no subquery, no column of an outer query and no positional parameter.
    - ``known_functions`` says that it calls no user-defined function.
    - ``null_rejecting`` says that it is never true if all columns of one of its relations are NULL.
    - ``implied`` says that it is an OR which another condition implies.
    - ``branches`` are the conjuncts of each branch of an OR. Those have no ``comparison``.
    - ``sql`` is the text with every column qualified, and ``pieces`` are its pieces.
    """

    text: str
    columns: frozenset[ColumnRef]
    deterministic: bool
    self_contained: bool
    known_functions: bool
    comparison: str | None = None
    operands: tuple[Operand, Operand] | None = None
    null_rejecting: bool = False
    sql: str = ""
    pieces: Pieces = field(default=(), compare=False)
    implied: bool = False
    branches: tuple[tuple[Condition, ...], ...] = field(default=(), compare=False, repr=False)

    @property
    def usable(self) -> bool:
        """Whether the condition has the same result if it is evaluated elsewhere and earlier."""
        return self.deterministic and self.self_contained

    @cached_property
    def aliases(self) -> frozenset[str]:
        """The relations whose columns the condition reads."""
        return frozenset(column.alias for column in self.columns)


class JoinKind(StrEnum):
    """The kinds of Hive's joins, and Spark's anti join."""

    INNER = "INNER"
    LEFT_OUTER = "LEFT OUTER"
    RIGHT_OUTER = "RIGHT OUTER"
    FULL_OUTER = "FULL OUTER"
    LEFT_SEMI = "LEFT SEMI"
    LEFT_ANTI = "LEFT ANTI"

    @property
    def preserves_left(self) -> bool:
        """Whether an ON condition can never drop a row of the left side."""
        return self in (JoinKind.LEFT_OUTER, JoinKind.FULL_OUTER, JoinKind.LEFT_ANTI)

    @property
    def supplies_nulls_left(self) -> bool:
        """Whether the join preserves the right side: it may put NULLs in place of a left row."""
        return self in (JoinKind.RIGHT_OUTER, JoinKind.FULL_OUTER)

    @property
    def supplies_nulls_right(self) -> bool:
        """Whether the join may put NULLs in place of a right row."""
        return self in (JoinKind.LEFT_OUTER, JoinKind.FULL_OUTER)


@dataclass(frozen=True)
class NarrowedTable:
    """A scan of a table of any size that reads a part of it, whose rows may therefore give keys.

    ``conditions`` are SQL for that part, with every column qualified by the scan's alias.
    ``version`` is the clause that holds the table to one snapshot.
    """

    scan: ScanRef
    conditions: str
    version: str


@dataclass(frozen=True)
class TableRelation:
    """A table or view in FROM.

    ``reference`` is the position of its name in the text, without the alias; ``text`` is the name.
    ``name`` is that of its :class:`~airflow_hive_opt.statement.scan_ref.ScanRef`.
    ``restrictable`` is false if ``(SELECT * FROM name WHERE ...) alias`` can't replace the name.
    ``stable`` is false if two reads may return different rows (TABLESAMPLE). ``narrowed`` is set if
    the local task has found that the scan reads a part of its table.
    """

    alias: str
    table: Table
    reference: Span
    text: str
    name: str
    aliased: bool
    restrictable: bool
    stable: bool
    narrowed: NarrowedTable | None = None

    @property
    def scan(self) -> ScanRef:
        """What identifies the scan."""
        at = self.reference.start, self.reference.stop
        return ScanRef(self.alias, self.table.scanned.name, at, self.name)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Column names in order, partition columns last."""
        return tuple(column.name for column in self.table.all_columns)


@dataclass(frozen=True)
class SubqueryRelation:
    """A subquery in FROM, one reader of a CTE, or the query of IN or of a scalar comparison.

    ``branches`` are the branches of UNION, mostly one. ``text`` is the query without its alias,
    with a WITH clause for the CTEs that it reads. ``self_contained`` and ``stable`` are as for
    :class:`Condition` and :class:`TableRelation`. ``tables`` are all tables that the text reads.
    ``names`` are the column names of an alias with a column list, and empty without one.
    ``single_row`` says that it is a scalar subquery.
    """

    alias: str
    branches: tuple[QueryBlock, ...]
    text: str
    self_contained: bool
    stable: bool
    tables: tuple[Table, ...]
    names: tuple[str, ...] = ()
    single_row: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Output column names in order; ``*`` stands for columns that are not known."""
        return self.names or tuple(found.name for found in self.branches[0].projections)


@dataclass(frozen=True)
class OpaqueRelation:
    """Anything else in FROM: VALUES, some CTEs and set operations, table functions, lateral views.

    ``text`` is the FROM item with its alias; it is empty if the item can't be copied
    into a key query, so that it gives no keys.
    ``columns`` is ``None`` if they are not known. ``tables`` are the tables that the text reads.
    """

    alias: str
    text: str = ""
    columns: tuple[str, ...] | None = None
    tables: tuple[Table, ...] = ()
    stable: bool = False


Relation = Union[TableRelation, SubqueryRelation, OpaqueRelation]


MOST_JOINS = 500
"""The joins of one block that are resolved; a chain of more is too deep for Python's stack."""


@dataclass(frozen=True)
class JoinStep:
    """The next relation of a left-associative join chain."""

    kind: JoinKind
    right: Relation
    on: tuple[Condition, ...]


@dataclass(frozen=True)
class Projection:
    """An output column of a block.

    ``column`` is the input column that it returns unchanged, or ``None``. ``columns`` are the input
    columns that it reads. ``sql`` is its expression with every column qualified; it is empty unless
    the expression is deterministic and reads nothing but ``columns``. ``pieces`` are those of
    ``sql``. ``strict`` says that the value is NULL if any of the columns is NULL.
    """

    name: str
    column: ColumnRef | None
    columns: frozenset[ColumnRef]
    sql: str = ""
    pieces: Pieces = field(default=(), compare=False)
    strict: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class QueryBlock:
    """One SELECT.

    ``group_by`` is ``None`` without aggregation. ``lateral`` are the lateral views. ``windows`` are
    the columns by which every window function partitions, and ``None`` without window functions.
    """

    first: Relation
    joins: tuple[JoinStep, ...]
    lateral: tuple[OpaqueRelation, ...]
    where: tuple[Condition, ...]
    group_by: tuple[Projection, ...] | None
    projections: tuple[Projection, ...]
    windows: frozenset[ColumnRef] | None
    distinct: bool
    limited: bool


@dataclass(frozen=True)
class Statement:
    """A resolved statement.

    ``kind`` is SELECT, INSERT OVERWRITE, INSERT INTO or CREATE TABLE AS, or ``None`` if the
    planner does not know the form. ``blocks`` are the query blocks that are not subqueries in
    another block's FROM: the main query (each branch of a set operation), bodies of CTEs, and
    subqueries inside expressions. The first ``branches`` blocks are the main query.
    ``passed_through`` has pairs of a scan and its partitioned table, for the parts of the statement
    that no block represents.
    """

    kind: str | None
    target: str | None
    blocks: tuple[QueryBlock, ...]
    passed_through: tuple[tuple[ScanRef, Table], ...] = ()
    branches: int = 1
