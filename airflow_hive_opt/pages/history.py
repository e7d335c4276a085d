"""The runs of a task over time, and all tasks in short."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from airflow_hive_opt.pages.models import Overview, Run, TaskHistory, TaskSummary
from airflow_hive_opt.pages.split_form import grouped
from airflow_hive_opt.pages.sums import TaskSums, plus
from airflow_hive_opt.pages.task_run import BriefRun, InstanceKey, TaskRun
from airflow_hive_opt.pruning.reasons import Reason


def overview(days: int, sums: Iterable[TaskSums], last: Mapping[InstanceKey, TaskRun]) -> Overview:
    """All tasks; those that read most come first.

    ``last`` has the last task instance of each. A task whose last instance is gone is left out.
    """
    found = (
        _summary(of_task, last[of_task.last.key])
        for of_task in sums
        if of_task.last is not None and of_task.last.key in last
    )
    tasks = sorted(grouped(found), key=_reads, reverse=True)
    return Overview(
        days=days,
        pruned_partitions=sum(task.pruned_partitions for task in tasks),
        pruned_bytes=reduce(plus, (task.pruned_bytes for task in tasks), None),
        estimated=any(task.estimated for task in tasks),
        runs=sum(task.runs for task in tasks),
        tasks=tasks,
    )


def history(
    dag_id: str,
    task_id: str,
    runs: Sequence[TaskRun],
    earlier: Sequence[TaskRun],
    note: str | None = None,
) -> TaskHistory:
    """The runs of a task, newest first.

    ``earlier`` are the runs before them, if there are any. ``note`` says why there is no run.
    """
    ordered = [run.brief for run in (*runs, *earlier)]
    return TaskHistory(
        dag_id=dag_id,
        task_id=task_id,
        runs=[_run(run, _before(run.brief, ordered[at + 1 :])) for at, run in enumerate(runs)],
        more=bool(earlier),
        note=note,
    )


def _summary(sums: TaskSums, last: TaskRun) -> TaskSummary:
    return TaskSummary(
        dag_id=last.key.dag_id,
        task_id=last.key.task_id,
        last=_run(last, sums.before_last),
        runs=sums.runs,
        pruned_partitions=sums.pruned_partitions,
        pruned_bytes=sums.pruned_bytes,
        estimated=sums.estimated,
        read_bytes=sums.read_bytes,
        trend=sums.trend,
    )


def _before(run: BriefRun, older: Iterable[BriefRun]) -> BriefRun | None:
    """The run of the same map index before ``run``; ``older`` are in descending order."""
    return next((each for each in older if each.key.map_index == run.key.map_index), None)


def _run(run: TaskRun, before: BriefRun | None) -> Run:
    figures = run.figures
    return Run(
        run_id=run.key.run_id,
        map_index=run.key.map_index,
        try_number=run.try_number,
        state=run.state,
        logical_date=run.logical_date,
        run_after=run.run_after,
        start_date=run.start_date,
        reason=figures.reason,
        kept=figures.kept,
        total=figures.total,
        seconds=dict(figures.seconds),
        read_bytes=figures.read_bytes,
        pruned_bytes=figures.pruned_bytes,
        estimated=figures.estimated,
        stopped=figures.stopped,
        change=_change(run, before),
    )


def _change(run: TaskRun, before: BriefRun | None) -> str | None:
    """The changes of the reasons since the run before, in words; ``None`` without changes."""
    if before is None or run.figures.scans == before.figures.scans:
        return None
    was, now = dict(before.figures.scans), dict(run.figures.scans)
    differing = [alias for alias in now if was.get(alias) != now[alias]]
    if differing and all(
        Reason.NOT_ASKED_AGAIN in (was.get(alias), now[alias]) for alias in differing
    ):
        return None
    if not differing:
        return f"other scans than in run {before.key.run_id}"
    return "; ".join(
        f"{alias}: {was.get(alias, 'not read')} until run {before.key.run_id}, then {now[alias]}"
        for alias in differing
    )


def _reads(task: TaskSummary) -> tuple[float, int]:
    """The bytes and partitions that the last run read, to sort by; unknown bytes sort as most."""
    read = task.read_bytes
    return math.inf if read is None else read, task.last.kept
