"""Cuts the operator graph into Hive's tasks (GenMapRedUtils and its rules).

A task has at most one reducer. Its mappers run the operators from the scans to the ReduceSinks,
and its reducers run the rest. A temporary file separates two tasks where rows leave a reducer and
are shuffled again, or where they meet the rows of another job in a union.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_hive_opt.hive.graph.operator_graph import (
    FileSink,
    Join,
    MapJoin,
    Operator,
    OperatorGraph,
    ReduceSink,
    TableScan,
    Union,
    graph,
    topological,
)
from airflow_hive_opt.statement.zip_strict import zip_strict


@dataclass(eq=False)
class Task:
    """A task: ``kind`` is MapReduce, LocalWork, Conditional, Fetch, Move or Stats.

    ``branches`` are the tasks from which a Conditional chooses. ``backup`` is the task that runs if
    this branch fails. ``scans`` are the roots of the task's operators. ``reducer`` is the first
    operator that runs in the reducers of a MapReduce.
    """

    kind: str
    scans: list[TableScan] = field(default_factory=list)
    reducer: Operator | None = None
    parents: list[Task] = field(default_factory=list)
    children: list[Task] = field(default_factory=list)
    branches: list[Task] = field(default_factory=list)
    backup: Task | None = None
    branch_of: Task | None = None
    number: int = 0

    @property
    def name(self) -> str:
        """The stage name, such as ``Stage-4``."""
        return f"Stage-{self.number}"

    def operators(self) -> list[Operator]:
        """Returns all operators of the task."""
        return list(graph(self.scans))

    def joins(self) -> list[Join]:
        """Returns the joins of the task, in the order of the graph."""
        return [operator for operator in self.operators() if isinstance(operator, Join)]

    def local_scans(self) -> list[TableScan]:
        """Returns the scans of small tables that a map join reads before the job starts."""
        small: list[TableScan] = []
        for join in self.joins():
            if isinstance(join, MapJoin) and join.kind != "SortMergeBucketMapJoin":
                for tag, parent in enumerate(join.parents):
                    if tag != join.big:
                        small += [scan for scan in scans_below(parent) if scan not in small]
        return small

    def mapped_scans(self) -> list[TableScan]:
        """Returns the scans that the job's mappers read."""
        local = self.local_scans()
        return [scan for scan in self.scans if scan not in local]


def depend(child: Task, parent: Task) -> None:
    """Makes ``child`` wait for ``parent``."""
    if parent not in child.parents:
        child.parents.append(parent)
        parent.children.append(child)


def scans_below(operator: Operator) -> list[TableScan]:
    """Returns the scans whose rows reach an operator, within its task."""
    found: list[TableScan] = []
    stack = [operator]
    seen: set[int] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, TableScan) and current not in found:
            found.append(current)
        stack.extend(reversed(current.parents))
    return found


def cut(operators: OperatorGraph) -> list[Task]:
    """Returns the tasks of a graph, each after the tasks it depends on."""
    writers = _cut_edges(operators)
    tasks = _components(operators)
    owner = {id(operator): task for task in tasks for operator in task.operators()}
    for sink, scan in writers:
        depend(owner[id(scan)], owner[id(sink)])
    return _in_order(tasks)


def _cut_edges(operators: OperatorGraph) -> list[tuple[FileSink, TableScan]]:
    """Inserts temporary files where a task ends and returns their writers and readers."""
    cuts: list[tuple[FileSink, TableScan]] = []
    reduced: dict[int, bool] = {}
    for operator in topological(operators.scans):
        inputs = [
            isinstance(parent, ReduceSink) or reduced[id(parent)] for parent in operator.parents
        ]
        if isinstance(operator, ReduceSink):
            if inputs[0]:
                cuts.append(_cut(operators, operator.parents[0], operator))
            reduced[id(operator)] = False
            continue
        if isinstance(operator, Union) and any(inputs) and not operators.correlated:
            for parent, is_reduced in zip_strict(list(operator.parents), inputs):
                if is_reduced or _behind_shuffle(parent):
                    cuts.append(_cut(operators, parent, operator))
            reduced[id(operator)] = False
            continue
        if isinstance(operator, Union) and any(map(_behind_shuffle, operator.parents)):
            for parent in list(operator.parents):
                if _behind_shuffle(parent):
                    cuts.append(_cut(operators, parent, operator))
            reduced[id(operator)] = False
            continue
        reduced[id(operator)] = any(inputs)
    cuts += _split_mappers(operators)
    return cuts


def _behind_shuffle(operator: Operator) -> bool:
    """Tells whether an operator's rows come from a temporary file."""
    return any(
        isinstance(scan, TableScan) and scan.table is None and scan.alias == ""
        for scan in scans_below(operator)
    )


def _split_mappers(operators: OperatorGraph) -> list[tuple[FileSink, TableScan]]:
    """Inserts temporary files so that each scan's mappers feed only one reducer."""
    cuts = []
    for scan in list(operators.scans):
        reducers: list[Operator] = []
        for operator in _map_side([scan]):
            if not isinstance(operator, ReduceSink) or not operator.children:
                continue
            reducer = operator.children[0]
            if reducers and reducer not in reducers:
                cuts.append(_cut(operators, operator.parents[0], operator))
            else:
                reducers.append(reducer)
    return cuts


def _map_side(scans: Iterable[TableScan]) -> list[Operator]:
    found: list[Operator] = []
    stack: list[Operator] = []
    stack.extend(reversed([*scans]))
    seen: set[int] = set()
    while stack:
        operator = stack.pop()
        if id(operator) in seen:
            continue
        seen.add(id(operator))
        found.append(operator)
        if not isinstance(operator, ReduceSink):
            stack.extend(reversed(operator.children))
    return found


def _cut(operators: OperatorGraph, parent: Operator, child: Operator) -> tuple[FileSink, TableScan]:
    scan = TableScan(list(parent.columns))
    sink = FileSink(list(parent.columns), kind="temporary", writes=scan)
    parent.children[parent.children.index(child)] = sink
    sink.parents = [parent]
    child.parents[child.parents.index(parent)] = scan
    scan.children = [child]
    operators.scans.append(scan)
    return sink, scan


def _components(operators: OperatorGraph) -> list[Task]:
    """Returns one task for each connected part of the graph, after the cuts."""
    tasks: list[Task] = []
    seen: set[int] = set()
    for scan in operators.scans:
        if id(scan) in seen:
            continue
        stack: list[Operator] = [scan]
        members: list[Operator] = []
        while stack:
            operator = stack.pop()
            if id(operator) in seen:
                continue
            seen.add(id(operator))
            members.append(operator)
            stack += [*operator.parents, *operator.children]
        roots = [root for root in operators.scans if root in members]
        reducers = [
            operator.children[0]
            for operator in members
            if isinstance(operator, ReduceSink) and operator.children
        ]
        tasks.append(Task("MapReduce", roots, reducers[0] if reducers else None))
    return tasks


def _in_order(tasks: list[Task]) -> list[Task]:
    found: list[Task] = []

    def visit(task: Task) -> None:
        if task in found:
            return
        for parent in task.parents:
            visit(parent)
        if task not in found:
            found.append(task)

    for task in tasks:
        visit(task)
    return found


def clone(task: Task) -> Task:
    """Returns a copy of a task with its own operators and without dependencies."""
    operators = task.operators()
    copies = {id(operator): copy.copy(operator) for operator in operators}
    for operator in operators:
        new = copies[id(operator)]
        new.parents = [copies[id(parent)] for parent in operator.parents]
        new.children = [copies[id(child)] for child in operator.children]
    scans = [copies[id(scan)] for scan in task.scans]
    found = Task("MapReduce", [scan for scan in scans if isinstance(scan, TableScan)])
    found.reducer = copies[id(task.reducer)] if task.reducer is not None else None
    return found


def make_conditional(task: Task, branches: list[Task], tasks: list[Task]) -> None:
    """Adds a Conditional that chooses one of ``branches``, with ``task`` itself as their backup."""
    conditional = Task("Conditional", branches=[*branches, task])
    for parent in task.parents:
        parent.children[parent.children.index(task)] = conditional
    conditional.parents, task.parents = task.parents, []
    for branch in branches:
        branch.backup = task
        branch.children = list(task.children)
        branch.branch_of = conditional
        for child in task.children:
            child.parents.insert(child.parents.index(task), branch)
    task.branch_of = conditional
    at = tasks.index(task)
    tasks[at:at] = [conditional, *branches]
