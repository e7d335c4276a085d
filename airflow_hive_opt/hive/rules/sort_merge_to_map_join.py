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

from airflow_hive_opt.hive.graph.operator_graph import MapJoin
from airflow_hive_opt.hive.rules.automatic_map_join import bytes_of
from airflow_hive_opt.hive.rules.hinted_map_join import big_table_candidates
from airflow_hive_opt.hive.tasks import Task, clone, make_conditional, scans_below
from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE, Settings


def convert_sort_merge(tasks: list[Task], settings: Settings) -> list[Task]:
    """Returns the converted tasks."""
    if not settings.is_on("hive.auto.convert.join"):
        return tasks
    if not settings.is_on("hive.auto.convert.sortmerge.join.to.mapjoin"):
        return tasks
    limit = settings.number(SMALL_TABLE_FILESIZE)
    found = list(tasks)
    for task in tasks:
        joins = [join for join in task.joins() if isinstance(join, MapJoin)]
        if task.reducer is None or len(joins) != 1 or not joins[0].automatic:
            continue
        if any(scan not in scans_below(joins[0]) for scan in task.scans):
            continue
        branches = []
        known = sum(bytes_of(scan) or 0 for scan in task.scans)
        for tag in sorted(big_table_candidates(joins[0].conditions)):
            own = sum(bytes_of(scan) or 0 for scan in scans_below(joins[0].parents[tag]))
            if own > 0 and known - own > limit:
                continue
            branch = clone(task)
            (join,) = (found for found in branch.joins() if isinstance(found, MapJoin))
            join.kind, join.big = "MapJoin", tag
            branches.append(branch)
        if branches:
            make_conditional(task, branches, found)
    return found
