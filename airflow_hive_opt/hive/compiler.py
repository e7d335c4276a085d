"""Compiles a statement to Hive's stages: parse, generate, rules, tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from airflow_hive_opt.hive.generate.generator import generate
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.statement_parser import parse_hive
from airflow_hive_opt.hive.rules import GRAPH_RULES, TASK_RULES
from airflow_hive_opt.hive.rules.fetch import only_fetches
from airflow_hive_opt.hive.tasks import Task, cut, depend
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.errors import PlanError, TooComplex, position
from airflow_hive_opt.statement.settings import Settings

# Errors of hints: a preserved side in memory, no table left to stream, operators around the join
# that Hive does not allow, files that do not match the buckets.
_HINT_ERRORS = (10057, 10058, 10227, 10141, 10246)


@dataclass(frozen=True)
class HivePlan:
    """Hive's plan of a statement.

    ``stages`` are in the order of their dependencies. ``correlated`` is true if the Correlation
    Optimizer merged jobs.
    """

    sql: str
    kind: str
    stages: tuple[Task, ...]
    correlated: bool


def compile_statement(
    sql: str,
    catalog: Catalog,
    settings: Settings,
    watch: Callable[[str, ops.OperatorGraph], None] | None = None,
) -> HivePlan:
    """Returns Hive's plan for one statement.

    After the graph is built and after every graph rule, ``watch`` is called with the name of the
    step and the graph.

    Raises :class:`PlanError` if Hive rejects the statement.
    """
    try:
        return _compile(sql, catalog, settings, watch)
    except RecursionError:
        raise TooComplex from None
    except PlanError as error:
        raise _placed(error, sql) from None


def _placed(error: PlanError, sql: str) -> PlanError:
    """Adds the position of the hint or of the statement to an error that has no position."""
    if error.line is not None:
        return error
    hint = sql.find("/*+") if error.number in _HINT_ERRORS else -1
    start = hint if hint >= 0 else len(sql) - len(sql.lstrip())
    return PlanError(error.code, error.message, *position(sql, start), number=error.number)


def _compile(
    sql: str,
    catalog: Catalog,
    settings: Settings,
    watch: Callable[[str, ops.OperatorGraph], None] | None,
) -> HivePlan:
    statement = parse_hive(sql)
    scans, sinks = generate(sql, statement, catalog, settings)
    graph = ops.OperatorGraph(sql, settings, scans, sinks)
    if watch:
        watch("generate", graph)
    for rule in GRAPH_RULES:
        rule(graph)
        if watch:
            watch(rule.__name__, graph)
    if statement.kind == "SELECT" and only_fetches(graph):
        return HivePlan(sql, statement.kind, (Task("Fetch", list(graph.scans)),), False)
    tasks = cut(graph)
    merged = _merged_sinks(tasks, settings)
    for task_rule in TASK_RULES:
        tasks = task_rule(tasks, settings)
    tasks = _with_local_work(tasks)
    _finish(tasks, statement.kind, graph, merged)
    _number(tasks)
    return HivePlan(sql, statement.kind, tuple(tasks), graph.correlated)


def _merged_sinks(tasks: list[Task], settings: Settings) -> set[int]:
    """Returns the ids of the operators behind which Hive merges small files.

    By default, these are those of mappers. Hive decides when it reaches a sink: until the first
    ReduceSink of a job, it treats the job as map-only.
    """
    found: set[int] = set()
    for task in tasks:
        name = "hive.merge.mapfiles"
        for operator in task.operators():
            if isinstance(operator, ops.ReduceSink):
                name = "hive.merge.mapredfiles"
            elif settings.is_on(name):
                found.add(id(operator))
    return found


def _results(task: Task) -> list[ops.FileSink]:
    """Returns the sinks that write a result of the statement, no temporary file."""
    sinks = (found for found in task.operators() if isinstance(found, ops.FileSink))
    return [sink for sink in sinks if sink.kind != "temporary"]


def _with_local_work(tasks: list[Task]) -> list[Task]:
    """Adds a LocalWork before every job that reads small tables into memory."""
    found: list[Task] = []
    for task in tasks:
        if task.kind == "MapReduce" and task.local_scans():
            local = Task("LocalWork", task.local_scans())
            for parent in task.parents:
                parent.children[parent.children.index(task)] = local
            local.parents, task.parents = task.parents, []
            depend(task, local)
            if task.branch_of is not None:
                branches = task.branch_of.branches
                branches[branches.index(task)] = local
            found.append(local)
        found.append(task)
    return found


def _finish(tasks: list[Task], kind: str, graph: ops.OperatorGraph, merged: set[int]) -> None:
    """Adds the fetch of a query, or the moves of its inserts."""
    jobs = [task for task in tasks if task.kind == "MapReduce"]
    if kind == "SELECT":
        fetch = Task("Fetch")
        for job in jobs:
            if _results(job):
                depend(fetch, job)
        tasks.append(fetch)
        return
    for sink in graph.sinks:
        target = (sink.kind, sink.table)  # a branch of a Conditional has a copy of the sink
        writers = [
            job for job in jobs if any((each.kind, each.table) == target for each in _results(job))
        ]
        move = Task("Move")
        for last in _merge_files(tasks, writers) if id(sink) in merged else writers:
            depend(move, last)
        tasks.append(move)
        if sink.table is not None and graph.settings.is_on("hive.stats.autogather"):
            stats = Task("Stats")
            depend(stats, move)
            tasks.append(stats)


def _merge_files(tasks: list[Task], writers: list[Task]) -> list[Task]:
    """Adds a Conditional that merges small files and returns its last tasks.

    The Conditional moves the files, merges them with a job, or moves some and merges the others.
    """
    only_move, move_rest = Task("Move"), Task("Move")
    merge, merge_rest = Task("MapReduce"), Task("MapReduce")
    conditional = Task("Conditional", branches=[only_move, merge, merge_rest])
    for writer in writers:
        depend(conditional, writer)
    depend(move_rest, merge_rest)
    for task in conditional.branches:
        task.branch_of = conditional
    tasks += [conditional, only_move, merge, merge_rest, move_rest]
    return [only_move, merge, move_rest]


def _number(tasks: list[Task]) -> None:
    """Numbers the stages: the fetch and the moves first, from 0, then all other tasks in order."""
    in_order = sorted(tasks, key=lambda task: task.kind not in ("Fetch", "Move"))
    for number, task in enumerate(in_order):
        task.number = number
