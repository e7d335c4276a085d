"""The two tasks of a ``MapJoinPruneTaskGroup`` as one row in lists of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from airflow_hive_opt.pages.models import Run, TaskSummary
from airflow_hive_opt.pages.sums import plus

_LOCAL_TASK, _MAP_JOIN = ".local_task", ".map_join"


def grouped(tasks: Iterable[TaskSummary]) -> Iterator[TaskSummary]:
    """The tasks; a local task and the map join of its group become one row with their sums.

    The row has the last run of the two: the map join's, unless the local task has ended a later
    run, as a closed gate does.
    """
    by_group = sorted(tasks, key=lambda task: (task.dag_id, _group(task.task_id)))
    for _, found in groupby(by_group, key=lambda task: (task.dag_id, _group(task.task_id))):
        members = {task.task_id: task for task in found}
        group = _group(next(iter(members)))
        local_task = members.get(group + _LOCAL_TASK)
        map_join = members.get(group + _MAP_JOIN)
        if local_task is None or map_join is None:
            yield from members.values()
        else:
            yield _row(group, local_task, map_join)


def _group(task_id: str) -> str:
    for suffix in (_LOCAL_TASK, _MAP_JOIN):
        if task_id.endswith(suffix):
            return task_id.removesuffix(suffix)
    return task_id


def _row(group: str, local_task: TaskSummary, map_join: TaskSummary) -> TaskSummary:
    joined_last = map_join.last.run_id == local_task.last.run_id or (
        _started(map_join.last) > _started(local_task.last)
    )
    shown = map_join if joined_last else local_task
    return shown.model_copy(
        update={
            "group": group,
            "runs": max(local_task.runs, map_join.runs),
            "pruned_partitions": local_task.pruned_partitions + map_join.pruned_partitions,
            "pruned_bytes": plus(local_task.pruned_bytes, map_join.pruned_bytes),
            "estimated": map_join.estimated,
            "read_bytes": plus(local_task.read_bytes, map_join.read_bytes),
        }
    )


def _started(run: Run) -> float:
    return (run.start_date or run.run_after).timestamp()
