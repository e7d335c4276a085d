"""Cuts the operator graph into Hive's tasks (GenMapRedUtils and its rules).

A task has at most one reducer. Its mappers run the operators from the scans to the ReduceSinks,
and its reducers run the rest. A temporary file separates two tasks where rows leave a reducer and
are shuffled again, or where they meet the rows of another job in a union.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.statement.zip_strict import zip_strict


@dataclass(eq=False)
class Task:
    """A task: ``kind`` is MapReduce, LocalWork, Conditional, Fetch, Move or Stats.

    ``branches`` are the tasks from which a Conditional chooses. ``backup`` is the task that runs if
    this branch fails. ``scans`` are the roots of the task's operators. ``reducer`` is the first
    operator that runs in the reducers of a MapReduce.
    """

    kind: str
    scans: list[ops.TableScan] = field(default_factory=list)
    reducer: ops.Operator | None = None
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

    def operators(self) -> list[ops.Operator]:
        """Returns all operators of the task."""
        return list(ops.graph(self.scans))

    def joins(self) -> list[ops.Join]:
        """Returns the joins of the task, in the order of the graph."""
        return [operator for operator in self.operators() if isinstance(operator, ops.Join)]

    def map_joins(self) -> list[ops.MapJoin]:
        """Returns the joins that the task's mappers run."""
        return [join for join in self.joins() if isinstance(join, ops.MapJoin)]

    def local_scans(self) -> list[ops.TableScan]:
        """Returns the scans of small tables that a map join reads before the job starts."""
        small: list[ops.TableScan] = []
        for join in self.map_joins():
            if join.kind != "SortMergeBucketMapJoin":
                for tag, parent in enumerate(join.parents):
                    if tag != join.big:
                        small += [scan for scan in scans_below(parent) if scan not in small]
        return small

    def mapped_scans(self) -> list[ops.TableScan]:
        """Returns the scans that the job's mappers read."""
        local = self.local_scans()
        return [scan for scan in self.scans if scan not in local]


def depend(child: Task, parent: Task) -> None:
    """Makes ``child`` wait for ``parent``."""
    if parent not in child.parents:
        child.parents.append(parent)
        parent.children.append(child)


def scans_below(operator: ops.Operator) -> list[ops.TableScan]:
    """Returns the scans whose rows reach an operator, within its task."""
    below = ops.reachable([operator], lambda found: found.parents)
    return [found for found in below if isinstance(found, ops.TableScan)]


def cut(operators: ops.OperatorGraph) -> list[Task]:
    """Returns the tasks of a graph, each after the tasks it depends on."""
    writers = _cut_edges(operators)
    tasks = _components(operators)
    owner = {id(operator): task for task in tasks for operator in task.operators()}
    for sink, scan in writers:
        depend(owner[id(scan)], owner[id(sink)])
    return _in_order(tasks)


def _cut_edges(operators: ops.OperatorGraph) -> list[tuple[ops.FileSink, ops.TableScan]]:
    """Inserts temporary files where a task ends and returns their writers and readers."""
    cuts: list[tuple[ops.FileSink, ops.TableScan]] = []
    reduced: dict[int, bool] = {}
    for operator in ops.topological(operators.scans):
        inputs = [
            isinstance(parent, ops.ReduceSink) or reduced[id(parent)] for parent in operator.parents
        ]
        if isinstance(operator, ops.ReduceSink):
            if inputs[0]:
                cuts.append(_cut(operators, operator.parents[0], operator))
            reduced[id(operator)] = False
            continue
        reduced[id(operator)] = any(inputs)
        if isinstance(operator, ops.Union):
            split = any(inputs) and not operators.correlated
            for parent, is_reduced in zip_strict(list(operator.parents), inputs):
                if (split and is_reduced) or _behind_shuffle(parent):
                    cuts.append(_cut(operators, parent, operator))
                    reduced[id(operator)] = False
    return cuts + _split_mappers(operators)


def _behind_shuffle(operator: ops.Operator) -> bool:
    """Tells whether an operator's rows come from a temporary file."""
    return any(scan.table is None and scan.alias == "" for scan in scans_below(operator))


def _split_mappers(operators: ops.OperatorGraph) -> list[tuple[ops.FileSink, ops.TableScan]]:
    """Inserts temporary files so that each scan's mappers feed only one reducer."""
    cuts = []
    for scan in list(operators.scans):
        reducers: list[ops.Operator] = []
        for operator in list(ops.reachable([scan], _in_mappers)):
            if not isinstance(operator, ops.ReduceSink) or not operator.children:
                continue
            reducer = operator.children[0]
            if reducers and reducer not in reducers:
                cuts.append(_cut(operators, operator.parents[0], operator))
            else:
                reducers.append(reducer)
    return cuts


def _in_mappers(operator: ops.Operator) -> list[ops.Operator]:
    return [] if isinstance(operator, ops.ReduceSink) else operator.children


def _cut(
    operators: ops.OperatorGraph, parent: ops.Operator, child: ops.Operator
) -> tuple[ops.FileSink, ops.TableScan]:
    scan = ops.TableScan(list(parent.columns))
    sink = ops.FileSink(list(parent.columns), kind="temporary", writes=scan)
    ops.insert_between(parent, sink, child)
    ops.insert_between(sink, scan, child)
    sink.children, scan.parents = [], []
    operators.scans.append(scan)
    return sink, scan


def _components(operators: ops.OperatorGraph) -> list[Task]:
    """Returns one task for each connected part of the graph, after the cuts."""
    tasks: list[Task] = []
    seen: set[int] = set()
    for scan in operators.scans:
        if id(scan) in seen:
            continue
        members = list(ops.reachable([scan], lambda each: [*each.parents, *each.children]))
        seen.update(map(id, members))
        roots = [root for root in operators.scans if root in members]
        reducers = [
            operator.children[0]
            for operator in members
            if isinstance(operator, ops.ReduceSink) and operator.children
        ]
        tasks.append(Task("MapReduce", roots, reducers[0] if reducers else None))
    return tasks


def _in_order(tasks: list[Task]) -> list[Task]:
    found: list[Task] = []

    def visit(task: Task) -> None:
        if task not in found:
            for parent in task.parents:
                visit(parent)
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
    found = Task("MapReduce", [scan for scan in scans if isinstance(scan, ops.TableScan)])
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
