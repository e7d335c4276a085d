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

from collections.abc import Callable

from airflow_hive_opt.hive.graph.operator_graph import FileSink, Join, MapJoin, TableScan
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
    unconditional = settings.is_on("hive.auto.convert.join.noconditionaltask")
    big = _big_table(task, join, settings) if unconditional else None
    if big is None:
        add_branches(task, join, tasks, settings, _convert)
    else:
        _convert(task, big)
        _merge_into_child(task, tasks, settings)


def _common_join(task: Task) -> Join | None:
    join = task.reducer
    if not isinstance(join, Join) or isinstance(join, MapJoin):
        return None
    sorted_merge = any(each.kind == "SortMergeBucketMapJoin" for each in task.map_joins())
    return None if sorted_merge else join


def _sizes(scans: list[TableScan]) -> int | None:
    sizes = [bytes_of(scan) for scan in scans]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _big_table(task: Task, join: Join, settings: Settings) -> int | None:
    limit = settings.number("hive.auto.convert.join.noconditionaltask.size")
    found: int | None = None
    found_size: int | None = None
    for tag in sorted(big_table_candidates(join.conditions)):
        own = scans_below(join.parents[tag])
        others = _sizes([scan for scan in task.scans if scan not in own])
        if others is None or others > limit:
            continue
        size = _sizes(own)
        if found is None or (found_size is not None and (size is None or size >= found_size)):
            found, found_size = tag, size
    return found


def _convert(task: Task, big: int) -> None:
    if isinstance(task.reducer, Join):
        to_map_join(task.reducer, big)
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
    reader = sinks[0].writes
    if reader is None or reader not in child.scans or len(reader.children) != 1:
        return
    if any(join.kind == "BucketMapJoin" for join in task.map_joins() + child.map_joins()):
        return
    total = _sizes([*task.local_scans(), *child.local_scans()])
    if total is None or total > settings.number("hive.auto.convert.join.noconditionaltask.size"):
        return
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


def add_branches(
    task: Task,
    join: Join,
    tasks: list[Task],
    settings: Settings,
    convert: Callable[[Task, int], None],
) -> None:
    """Adds a Conditional with a branch for each input of ``join`` that may be the big table.

    ``convert`` makes the map join of a branch, given the tag of its big table.
    """
    limit = settings.number(SMALL_TABLE_FILESIZE)
    known = sum(bytes_of(scan) or 0 for scan in task.scans)
    branches = []
    for tag in sorted(big_table_candidates(join.conditions)):
        size = _sizes(scans_below(join.parents[tag])) or 0
        if size == 0 or known - size <= limit:
            branches.append(clone(task))
            convert(branches[-1], tag)
    if branches:
        make_conditional(task, branches, tasks)
