"""Turns joins with small inputs into map joins, after the graph is cut into tasks.

* If the sizes of all small inputs are known and their sum is within
  ``hive.auto.convert.join.noconditionaltask.size``, the join becomes a map join. The map join runs
  inside the job that reads its result, if the small tables of both fit in that limit.
* Otherwise the join becomes a Conditional, with the common join as backup. The Conditional has one
  branch for each input that may be the big table, if the known size of its other inputs is within
  ``hive.mapjoin.smalltable.filesize``.

    >>> from airflow_hive_opt.hive.example import stages
    >>> stages("SELECT a.key FROM src a JOIN src1 b ON a.key = b.key")
    'LocalWork, MapReduce, Fetch'
    >>> stages("SELECT a.key FROM src a JOIN src1 b ON a.key = b.key",
    ...        **{"hive.auto.convert.join.noconditionaltask": "false"})
    'Conditional, LocalWork, MapReduce, LocalWork, MapReduce, MapReduce, Fetch'

Source: Hive's CommonJoinResolver and CommonJoinTaskDispatcher.
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph.operator_graph import (
    FileSink,
    Join,
    MapJoin,
    TableScan,
)
from airflow_hive_opt.hive.rules.hinted_map_join import big_table_candidates, to_map_join
from airflow_hive_opt.hive.rules.static_pruning import kept
from airflow_hive_opt.hive.tasks import Task, clone, make_conditional, scans_below
from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings


def convert_joins(tasks: list[Task], settings: Settings) -> list[Task]:
    """Returns the converted tasks. Converts children first, in Hive's order."""
    if not settings.is_on("hive.auto.convert.join"):
        return tasks
    found = list(tasks)
    for task in reversed(tasks):
        if task.kind == "MapReduce":
            _process(task, found, settings)
    return found


def bytes_of(scan: TableScan) -> int | None:
    """Returns the bytes that a scan reads, or ``None`` if unknown, as for a temporary file."""
    if scan.table is None:
        return None
    partitions = kept(scan)
    if scan.table.partition_columns:
        return None if partitions is None else sum(each.total_bytes for each in partitions)
    return scan.table.total_bytes


def _process(task: Task, tasks: list[Task], settings: Settings) -> None:
    join = _common_join(task)
    if join is None:
        return
    candidates = sorted(big_table_candidates(join.conditions))
    if not candidates:
        return
    big = None
    if settings.is_on("hive.auto.convert.join.noconditionaltask"):
        big = _big_table(task, join, candidates, settings)
    if big is not None:
        _convert(task, join, big)
        _merge_into_child(task, tasks, settings)
        return
    _make_conditional(task, join, candidates, tasks, settings)


def _common_join(task: Task) -> Join | None:
    join = task.reducer
    if not isinstance(join, Join) or isinstance(join, MapJoin):
        return None
    if any(
        isinstance(operator, MapJoin) and operator.kind == "SortMergeBucketMapJoin"
        for operator in task.operators()
    ):
        return None
    return join


def _sizes(scans: list[TableScan]) -> int | None:
    sizes = [bytes_of(scan) for scan in scans]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _big_table(task: Task, join: Join, candidates: list[int], settings: Settings) -> int | None:
    limit = settings.number("hive.auto.convert.join.noconditionaltask.size")
    found: int | None = None
    found_size: int | None = None
    for tag in candidates:
        own = scans_below(join.parents[tag])
        others = _sizes([scan for scan in task.scans if scan not in own])
        if others is None or others > limit:
            continue
        size = _sizes(own)
        if found is None or (found_size is not None and (size is None or size >= found_size)):
            found, found_size = tag, size
    return found


def _convert(task: Task, join: Join, big: int) -> None:
    to_map_join(join, big)
    task.reducer = None


def _merge_into_child(task: Task, tasks: list[Task], settings: Settings) -> None:
    """Moves a map join into the mappers of the job that reads its result, if only one does."""
    if len(task.children) != 1 or task.children[0].kind != "MapReduce":
        return
    (child,) = task.children
    own = task.mapped_scans()
    sinks = [found for found in task.operators() if isinstance(found, FileSink)]
    if len(own) != 1 or len(sinks) != 1 or len(sinks[0].parents) != 1:
        return
    readers = [scan for scan in child.scans if scan.table is None and scan.alias == ""]
    readers = [scan for scan in readers if scan in _reads_of(task, child)]
    if len(readers) != 1 or len(readers[0].children) != 1:
        return
    if any(join.kind == "BucketMapJoin" for join in _map_joins(task) + _map_joins(child)):
        return
    total = _sizes([*task.local_scans(), *child.local_scans()])
    if total is None or total > settings.number("hive.auto.convert.join.noconditionaltask.size"):
        return
    (reader,) = readers
    last, first = sinks[0].parents[0], reader.children[0]
    last.children[last.children.index(sinks[0])] = first
    first.parents[first.parents.index(reader)] = last
    at = child.scans.index(reader)
    child.scans[at : at + 1] = task.scans
    tasks.remove(task)
    child.parents.remove(task)
    for parent in task.parents:
        parent.children[parent.children.index(task)] = child
        if parent not in child.parents:
            child.parents.append(parent)


def _reads_of(task: Task, child: Task) -> list[TableScan]:
    """Returns the scans of ``child`` that read temporary files of ``task``."""
    temporary = [scan for scan in child.scans if scan.table is None and scan.alias == ""]
    written = {
        id(operator.writes)
        for operator in task.operators()
        if isinstance(operator, FileSink) and operator.writes is not None
    }
    return [scan for scan in temporary if id(scan) in written]


def _map_joins(task: Task) -> list[MapJoin]:
    return [join for join in task.joins() if isinstance(join, MapJoin)]


def _make_conditional(
    task: Task, join: Join, candidates: list[int], tasks: list[Task], settings: Settings
) -> None:
    limit = settings.number(SMALL_TABLE_FILESIZE)
    known = sum(size for size in map(bytes_of, task.scans) if size is not None)
    branches = []
    for tag in candidates:
        size = _sizes(scans_below(join.parents[tag])) or 0
        if size > 0 and known - size > limit:
            continue
        branch = clone(task)
        if isinstance(branch.reducer, Join):
            _convert(branch, branch.reducer, tag)
        branches.append(branch)
    if branches:
        make_conditional(task, branches, tasks)
