"""Hive's operator graph.

The rules change one graph in place, as Hive's optimizer does. Operators are therefore mutable and
compare by identity. Rows flow upwards, from the scans to the sinks: the parents of an operator are
below it, its children above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from airflow_hive_opt.hive.parser.syntax import Call, Column, Expression
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.settings import Settings

# Hive's abbreviations of its operators, and the names that EXPLAIN prints.
NAMES = {
    "TableScan": ("TS", "TableScan"),
    "Filter": ("FIL", "Filter Operator"),
    "Select": ("SEL", "Select Operator"),
    "ReduceSink": ("RS", "Reduce Output Operator"),
    "Join": ("JOIN", "Join Operator"),
    "MapJoin": ("MAPJOIN", "Map Join Operator"),
    "GroupBy": ("GBY", "Group By Operator"),
    "Union": ("UNION", "Union"),
    "Limit": ("LIM", "Limit"),
    "FileSink": ("FS", "File Output Operator"),
    "Script": ("SCR", "Transform Operator"),
    "TableFunction": ("PTF", "PTF Operator"),
    "LateralViewForward": ("LVF", "Lateral View Forward"),
    "LateralViewJoin": ("LVJ", "Lateral View Join Operator"),
    "UserTableFunction": ("UDTF", "UDTF Operator"),
    "Demux": ("DEMUX", "Demux Operator"),
    "Mux": ("MUX", "Mux Operator"),
}
_Operator = TypeVar("_Operator", bound="Operator")


@dataclass(frozen=True)
class ColumnInfo:
    """An output column: its internal name, and its table alias and name in SQL."""

    internal: str
    table: str | None
    name: str
    type: str = "string"
    partition: bool = False
    hidden: bool = False

    @property
    def column(self) -> Column:
        """The expression that reads the column."""
        return Column(self.internal, self.type, self.partition)


@dataclass(eq=False)
class Operator:
    """The attributes that all operators share: columns, parents and children.

    ``expressions`` maps an output column to its expression over the input. The expression is
    ``None`` if the operator itself makes the value, such as an aggregate. An operator whose
    ``expressions`` is ``None`` passes its input columns on unchanged.
    """

    columns: list[ColumnInfo]
    parents: list[Operator] = field(default_factory=list, repr=False)
    children: list[Operator] = field(default_factory=list, repr=False)
    expressions: dict[str, Expression | None] | None = field(default=None, repr=False)

    @property
    def short_name(self) -> str:
        """Hive's abbreviation."""
        return NAMES[type(self).__name__][0]

    @property
    def visible(self) -> list[ColumnInfo]:
        """The output columns that ``*`` means."""
        return [info for info in self.columns if not info.hidden]

    def info(self, internal: str) -> ColumnInfo | None:
        """The output column of that internal name."""
        return next((info for info in self.columns if info.internal == internal), None)


@dataclass(eq=False)
class TableScan(Operator):
    """Reads a table or, if ``table`` is ``None``, a temporary file or nothing.

    ``path`` is Hive's path of aliases, outermost subquery first: ``t:a``. ``partitions`` are those
    left after pruning; ``None`` means all. ``at`` is the position of the table's name in the
    statement, or of the view around it; ``None`` without a table.
    """

    alias: str = ""
    path: str = ""
    table: Table | None = None
    at: int | None = None
    partitions: tuple[str, ...] | None = None
    sampled: bool = False


@dataclass(eq=False)
class Filter(Operator):
    """Keeps the rows for which all conjuncts of ``predicate`` are true.

    ``generated`` are the conjuncts that Hive adds itself: join keys that are not null.
    """

    predicate: tuple[Expression, ...] = ()
    generated: frozenset[Expression] = frozenset()


@dataclass(eq=False)
class Select(Operator):
    """Computes the output columns. ``star`` marks a Select that passes its input on unchanged."""

    star: bool = False


@dataclass(eq=False)
class ReduceSink(Operator):
    """Sends rows to reducers by ``keys``.

    ``order`` has one ``+`` or ``-`` for each key. ``reducers`` is -1 if Hive may choose the number.
    ``distinct`` is the number of trailing keys that serve only DISTINCT aggregates.
    """

    keys: tuple[Expression, ...] = ()
    partition_keys: tuple[Expression, ...] = ()
    order: str = ""
    reducers: int = -1
    distinct: int = 0


@dataclass(frozen=True)
class JoinCondition:
    """How the input with tag ``right`` joins the input with tag ``left``."""

    kind: str
    left: int
    right: int


@dataclass(eq=False)
class Join(Operator):
    """A join in the reducer.

    ``sources`` maps every output column to its tag. ``aliases`` are the aliases of each input; an
    input that is the result of another join has several. ``order`` holds the tags in the order in
    which the inputs are sent; the last input is streamed. ``filters`` are ON conditions over
    preserved sides, by tag. ``residual`` are the other ON conditions of an outer join.
    """

    conditions: tuple[JoinCondition, ...] = ()
    sources: dict[str, int] = field(default_factory=dict)
    aliases: tuple[tuple[str, ...], ...] = ()
    order: tuple[int, ...] = ()
    filters: dict[int, tuple[Expression, ...]] = field(default_factory=dict)
    residual: tuple[Expression, ...] = ()
    map_aliases: tuple[str, ...] = ()
    stream_aliases: tuple[str, ...] = ()
    left_input_join: bool = False
    keys: tuple[tuple[Expression, ...], ...] = ()


@dataclass(eq=False)
class MapJoin(Join):
    """A join in the mapper that streams input ``big``; ``kind`` is EXPLAIN's name for it.

    ``automatic`` marks a sort-merge join without a hint.
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


class Union(Operator):
    """All rows of all parents."""


@dataclass(eq=False)
class Limit(Operator):
    """The first ``count`` rows."""

    count: int = 0


@dataclass(eq=False)
class FileSink(Operator):
    """Writes to ``table``, to a directory, or, if ``kind`` is SELECT, the result of the query.

    ``writes`` is the scan of another task that reads the temporary file written here.
    """

    kind: str = "SELECT"
    table: str | None = None
    writes: TableScan | None = field(default=None, repr=False)


@dataclass(eq=False)
class Script(Operator):
    """TRANSFORM: passes rows through a script."""

    script: str = ""


class TableFunction(Operator):
    """Window functions (Hive's PTF)."""


class LateralViewForward(Operator):
    """Sends every row both to the select and to the table function of a lateral view."""


@dataclass(eq=False)
class LateralViewJoin(Operator):
    """Joins a row with the rows that the table function made of it."""

    alias: str = ""


@dataclass(eq=False)
class UserTableFunction(Operator):
    """A table function such as ``explode``."""

    function: str = ""


class Demux(Operator):
    """Passes the rows of correlated ReduceSinks to the operators that followed each of them."""


class Mux(Operator):
    """Collects the rows of a join or group-by in the reducer of a correlated job."""


def attach(child: _Operator, *parents: Operator) -> _Operator:
    """Makes ``child`` the last child of ``parents`` and returns it."""
    for parent in parents:
        parent.children.append(child)
        child.parents.append(parent)
    return child


def remove(operator: Operator) -> None:
    """Removes an operator that has one parent; the parent takes its children."""
    (parent,) = operator.parents
    at = parent.children.index(operator)
    parent.children[at : at + 1] = operator.children
    for child in operator.children:
        child.parents[child.parents.index(operator)] = parent
    operator.parents, operator.children = [], []


def take_place(new: Operator, old: Operator) -> None:
    """Gives ``new`` the parents and children of ``old``."""
    new.parents, new.children = old.parents, old.children
    for parent in new.parents:
        parent.children[parent.children.index(old)] = new
    for child in new.children:
        child.parents[child.parents.index(old)] = new


def insert_between(parent: Operator, new: Operator, child: Operator) -> None:
    """Inserts ``new`` between ``parent`` and one of its children."""
    parent.children[parent.children.index(child)] = new
    child.parents[child.parents.index(parent)] = new
    new.parents, new.children = [parent], [child]


def insert_above(operator: Operator, new: Operator) -> None:
    """Inserts ``new`` between ``operator`` and all its children."""
    new.children = operator.children
    for child in new.children:
        child.parents[child.parents.index(operator)] = new
    operator.children = [new]
    new.parents = [operator]


def reachable(
    starts: Iterable[Operator], neighbours: Callable[[Operator], list[Operator]]
) -> Iterator[Operator]:
    """Yields the operators to which ``neighbours`` leads, each once, depth first."""
    seen: set[int] = set()
    stack = list(starts)[::-1]
    while stack:
        operator = stack.pop()
        if id(operator) not in seen:
            seen.add(id(operator))
            yield operator
            stack.extend(reversed(neighbours(operator)))


def graph(roots: Iterable[Operator]) -> Iterator[Operator]:
    """Yields every operator once, depth first from the roots."""
    return reachable(roots, lambda operator: operator.children)


def topological(scans: Iterable[Operator]) -> list[Operator]:
    """Returns every operator once, after all its parents."""
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
    """The graph of one statement: its scans and sinks, and what the rules need.

    ``correlated`` is true if the Correlation Optimizer merged jobs.
    """

    sql: str
    settings: Settings
    scans: list[TableScan]
    sinks: list[FileSink]
    correlated: bool = False

    def operators(self) -> list[Operator]:
        """Returns every operator once, depth first from the scans."""
        return list(graph(self.scans))

    def joins(self) -> list[Join]:
        """Returns the joins in the order of the graph."""
        return [operator for operator in self.operators() if isinstance(operator, Join)]
