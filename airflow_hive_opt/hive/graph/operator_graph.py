"""Hive's operator graph.

Hive's optimizer rewires one graph of operators in place, and so do the rules here: a ReduceSink
is taken out, a Join becomes a MapJoin, a Filter sinks to its scan. Operators therefore are mutable
and compare by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from airflow_hive_opt.hive.parser.syntax import Call, Column, Expression, Window
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.settings import Settings

SHORT_NAMES = {
    "TableScan": "TS",
    "Filter": "FIL",
    "Select": "SEL",
    "ReduceSink": "RS",
    "Join": "JOIN",
    "MapJoin": "MAPJOIN",
    "GroupBy": "GBY",
    "Union": "UNION",
    "Limit": "LIM",
    "FileSink": "FS",
    "Script": "SCR",
    "TableFunction": "PTF",
    "LateralViewForward": "LVF",
    "LateralViewJoin": "LVJ",
    "UserTableFunction": "UDTF",
    "Demux": "DEMUX",
    "Mux": "MUX",
}


@dataclass(frozen=True)
class ColumnInfo:
    """An output column: internal name, and the table alias and name that SQL knows it by."""

    internal: str
    table: str | None
    name: str
    type: str = "string"
    partition: bool = False
    hidden: bool = False

    @property
    def column(self) -> Column:
        """The expression that reads it."""
        return Column(self.internal, self.type, self.partition)


@dataclass(eq=False)
class Operator:
    """What all operators have: columns, and neighbours in the graph.

    ``expressions`` gives, for an output column, the expression over the input; ``None`` for a
    value made here (an aggregate). Operators without ``expressions`` hand their input on.
    """

    columns: list[ColumnInfo]
    parents: list[Operator] = field(default_factory=list, repr=False)
    children: list[Operator] = field(default_factory=list, repr=False)
    expressions: dict[str, Expression | None] | None = field(default=None, repr=False)

    @property
    def short_name(self) -> str:
        """Hive's abbreviation."""
        return SHORT_NAMES[type(self).__name__]

    def info(self, internal: str) -> ColumnInfo | None:
        """The output column called ``internal``."""
        return next((info for info in self.columns if info.internal == internal), None)


@dataclass(eq=False)
class TableScan(Operator):
    """Reads a table, or (``table`` is ``None``) a temporary file or nothing.

    ``path`` is Hive's path of aliases, outermost subquery first: ``t:a``. ``partitions`` are the
    ones left after pruning, ``None`` for all.
    """

    alias: str = ""
    path: str = ""
    table: Table | None = None
    partitions: tuple[str, ...] | None = None
    sampled: bool = False


@dataclass(eq=False)
class Filter(Operator):
    """Keeps the rows that fulfil all of ``predicate``.

    ``generated`` are the conjuncts that Hive adds itself (join keys that are not null).
    """

    predicate: tuple[Expression, ...] = ()
    generated: frozenset[Expression] = frozenset()
    sampling: bool = False


@dataclass(eq=False)
class Select(Operator):
    """Computes the output columns. ``star`` marks one that only hands its input on."""

    star: bool = False


@dataclass(eq=False)
class ReduceSink(Operator):
    """Sends rows to reducers by ``keys``.

    ``order`` has ``+`` or ``-`` a key; ``reducers`` is -1 where Hive is free to choose.
    ``distinct`` counts trailing keys that only serve DISTINCT aggregates.
    """

    keys: tuple[Expression, ...] = ()
    partition_keys: tuple[Expression, ...] = ()
    order: str = ""
    reducers: int = -1
    tag: int = -1
    distinct: int = 0


@dataclass(frozen=True)
class JoinCondition:
    """How input ``right`` joins input ``left``; both are tags."""

    kind: str
    left: int
    right: int


@dataclass(eq=False)
class Join(Operator):
    """A join in the reducer.

    ``sources`` gives every output column its tag. ``aliases`` are the aliases of each input
    (several for the result of another join), ``order`` the tags in the order they are sent: the
    last is streamed. ``filters`` are ON conditions of preserved sides, by tag; ``residual`` those
    over several sides of an outer join.
    """

    conditions: tuple[JoinCondition, ...] = ()
    sources: dict[str, int] = field(default_factory=dict)
    aliases: tuple[tuple[str, ...], ...] = ()
    scan_aliases: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    filters: dict[int, tuple[Expression, ...]] = field(default_factory=dict)
    residual: tuple[Expression, ...] = ()
    map_aliases: tuple[str, ...] = ()
    stream_aliases: tuple[str, ...] = ()
    left_input_join: bool = False
    keys: tuple[tuple[Expression, ...], ...] = ()


@dataclass(eq=False)
class MapJoin(Join):
    """A join in the mapper that reads input ``big``; ``kind`` as EXPLAIN names it.

    ``automatic`` marks a sort-merge join that no hint asked for.
    """

    big: int = 0
    kind: str = "MapJoin"
    automatic: bool = False


@dataclass(eq=False)
class GroupBy(Operator):
    """Aggregates. ``mode`` is hash, mergepartial, partial1, partials, final or complete."""

    mode: str = "hash"
    keys: tuple[Expression, ...] = ()
    aggregates: tuple[Call, ...] = ()
    grouping_sets: int = 0


@dataclass(eq=False)
class Union(Operator):
    """All rows of all parents."""


@dataclass(eq=False)
class Limit(Operator):
    """The first ``count`` rows."""

    count: int = 0


@dataclass(eq=False)
class FileSink(Operator):
    """Writes to ``table``, to a directory, or (``kind`` SELECT) to the one who asked.

    ``writes`` is the scan of another task that reads a temporary file.
    """

    kind: str = "SELECT"
    table: str | None = None
    writes: TableScan | None = field(default=None, repr=False)


@dataclass(eq=False)
class Script(Operator):
    """TRANSFORM through a program."""

    script: str = ""


@dataclass(eq=False)
class TableFunction(Operator):
    """Window functions (Hive's PTF)."""

    window: Window | None = None


@dataclass(eq=False)
class LateralViewForward(Operator):
    """Sends every row both to the select and to the table function of a lateral view."""


@dataclass(eq=False)
class LateralViewJoin(Operator):
    """Puts a row beside the rows that the table function made of it."""

    alias: str = ""


@dataclass(eq=False)
class UserTableFunction(Operator):
    """A table function such as ``explode``."""

    function: str = ""


@dataclass(eq=False)
class Demux(Operator):
    """Hands rows of correlated ReduceSinks to the operators that stood behind each of them."""


@dataclass(eq=False)
class Mux(Operator):
    """Collects what operators below a correlated join or group-by send it."""


def attach(child: Operator, *parents: Operator) -> None:
    """Makes ``child`` the last child of ``parents``."""
    for parent in parents:
        parent.children.append(child)
        child.parents.append(parent)


def remove(operator: Operator) -> None:
    """Takes an operator with one parent out; its children move up."""
    (parent,) = operator.parents
    replace_child(parent, operator, operator.children)
    for child in operator.children:
        child.parents[child.parents.index(operator)] = parent
    operator.parents, operator.children = [], []


def replace_child(parent: Operator, old: Operator, new: Iterable[Operator]) -> None:
    """Puts ``new`` in the place of ``old`` among ``parent``'s children."""
    at = parent.children.index(old)
    parent.children[at : at + 1] = new


def insert_above(operator: Operator, new: Operator) -> None:
    """Puts ``new`` between ``operator`` and all its children."""
    new.children = operator.children
    for child in new.children:
        child.parents[child.parents.index(operator)] = new
    operator.children = [new]
    new.parents = [operator]


def graph(roots: Iterable[Operator]) -> Iterator[Operator]:
    """Every operator once, parents before children, depth first."""
    seen: set[int] = set()
    stack = list(roots)[::-1]
    while stack:
        operator = stack.pop()
        if id(operator) in seen:
            continue
        seen.add(id(operator))
        yield operator
        stack.extend(reversed(operator.children))


def topological(scans: Iterable[Operator]) -> list[Operator]:
    """Every operator once, after all its parents."""
    operators = list(graph(scans))
    waiting = {id(operator): len(operator.parents) for operator in operators}
    ready = [operator for operator in operators if not operator.parents]
    found = []
    while ready:
        operator = ready.pop(0)
        found.append(operator)
        for child in operator.children:
            waiting[id(child)] -= 1
            if waiting[id(child)] == 0:
                ready.append(child)
    return found


@dataclass
class OperatorGraph:
    """The graph of one statement: its roots and leaves, and what the rules need to know."""

    sql: str
    settings: Settings
    scans: list[TableScan]
    sinks: list[FileSink]
    correlated: bool = False

    def operators(self) -> list[Operator]:
        """Every operator once, parents before children, depth first."""
        return list(graph(self.scans))

    def joins(self) -> list[Join]:
        """The joins, in the order of the graph."""
        return [operator for operator in self.operators() if isinstance(operator, Join)]
