"""Lets a sort-merge join without a hint run as a map join.

The rule applies with ``hive.auto.convert.sortmerge.join.to.mapjoin``, to a job that has a reducer
above the sort-merge join and reads nothing else. The job becomes a Conditional of map joins, with
the sort-merge join as backup.

    >>> from airflow_hive_opt.hive.example import stages
    >>> on = {"hive.auto.convert.sortmerge.join": "true",
    ...       "hive.optimize.bucketmapjoin.sortedmerge": "true",
    ...       "hive.auto.convert.sortmerge.join.to.mapjoin": "true"}
    >>> sql = "SELECT a.key, count(1) FROM b4 a JOIN b4 b ON a.key = b.key GROUP BY a.key"
    >>> stages(sql, **on)
    'Conditional, LocalWork, MapReduce, LocalWork, MapReduce, MapReduce, Fetch'

Source: Hive's SortMergeJoinResolver and SortMergeJoinTaskDispatcher.
"""

from __future__ import annotations

from airflow_hive_opt.hive.rules.automatic_map_join import add_branches
from airflow_hive_opt.hive.tasks import Task, scans_below
from airflow_hive_opt.statement.settings import Settings


def convert_sort_merge(tasks: list[Task], settings: Settings) -> list[Task]:
    """Returns the converted tasks."""
    if not settings.is_on("hive.auto.convert.join"):
        return tasks
    if not settings.is_on("hive.auto.convert.sortmerge.join.to.mapjoin"):
        return tasks
    found = list(tasks)
    for task in tasks:
        joins = task.map_joins()
        if task.reducer is None or len(joins) != 1 or not joins[0].automatic:
            continue
        if all(scan in scans_below(joins[0]) for scan in task.scans):
            add_branches(task, joins[0], found, settings, _convert)
    return found


def _convert(task: Task, big: int) -> None:
    (join,) = task.map_joins()
    join.kind, join.big = "MapJoin", big
