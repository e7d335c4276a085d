"""The runs of a task over time, and all tasks in short."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from airflow_hive_opt.pages.models import Overview, Run, TaskHistory, TaskSummary, Trend
from airflow_hive_opt.pages.task_run import BriefRun, InstanceKey, TaskRun

_PRUNED = "PRUNED"
_NO_BYTES = -1


def last_keys(runs: Iterable[BriefRun]) -> list[InstanceKey]:
    """The last task instance of each task; ``runs`` are in order of time."""
    return list({(run.key.dag_id, run.key.task_id): run.key for run in runs}.values())


def overview(days: int, runs: Sequence[BriefRun], last: Mapping[InstanceKey, TaskRun]) -> Overview:
    """All tasks of ``runs``, which are in order of time; those that read most come first.

    ``last`` has the task instances of :func:`last_keys`. A task whose last one is gone is left out.
    """
    by_task: dict[tuple[str, str], list[BriefRun]] = defaultdict(list)
    for run in runs:
        by_task[run.key.dag_id, run.key.task_id].append(run)
    found = (
        _summary(of_task, last[of_task[-1].key])
        for of_task in by_task.values()
        if of_task[-1].key in last
    )
    tasks = sorted(found, key=_reads, reverse=True)
    return Overview(
        days=days,
        spared_partitions=sum(task.spared_partitions for task in tasks),
        spared_bytes=_sum(task.spared_bytes for task in tasks),
        runs=sum(task.runs for task in tasks),
        tasks=tasks,
    )


def history(
    dag_id: str, task_id: str, runs: Sequence[TaskRun], earlier: Sequence[TaskRun]
) -> TaskHistory:
    """The runs of a task, newest first. ``earlier`` are the runs before them, if there are any."""
    ordered = [run.brief for run in (*runs, *earlier)]
    return TaskHistory(
        dag_id=dag_id,
        task_id=task_id,
        runs=[_run(run, _before(run.brief, ordered[at + 1 :])) for at, run in enumerate(runs)],
        more=bool(earlier),
    )


def _summary(runs: Sequence[BriefRun], last: TaskRun) -> TaskSummary:
    figures = [run.figures for run in runs]
    return TaskSummary(
        dag_id=last.key.dag_id,
        task_id=last.key.task_id,
        last=_run(last, _before(runs[-1], runs[-2::-1])),
        runs=len(runs),
        spared_partitions=sum(each.total - each.kept for each in figures),
        spared_bytes=_sum(each.spared_bytes for each in figures),
        read_bytes=_sum(each.read_bytes for each in figures),
        trend=_trend(runs),
    )


def _trend(runs: Sequence[BriefRun]) -> Trend:
    """Whether the last run prunes less than an earlier one."""
    last = runs[-1]
    before = [run for run in runs[:-1] if run.key.map_index == last.key.map_index]
    lost = any(_lost(run, last) for run in before[-1:])
    if lost or (last.figures.reason != _PRUNED and any(map(_prunes, before))):
        return "worse"
    return "pruned" if _prunes(last) else "nothing pruned"


def _prunes(run: BriefRun) -> bool:
    return run.figures.reason == _PRUNED


def _lost(before: BriefRun, after: BriefRun) -> bool:
    """Whether a scan that was pruned is read whole now."""
    now = dict(after.figures.scans)
    return any(
        code == _PRUNED and now.get(alias, _PRUNED) != _PRUNED
        for alias, code in before.figures.scans
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
        spared_bytes=figures.spared_bytes,
        change=_change(run, before),
    )


def _change(run: TaskRun, before: BriefRun | None) -> str | None:
    """How the reasons differ from those of the run before, in words; ``None`` if they do not."""
    if before is None or run.figures.scans == before.figures.scans:
        return None
    was, now = dict(before.figures.scans), dict(run.figures.scans)
    differing = [alias for alias in now if was.get(alias) != now[alias]]
    if not differing:
        return f"other scans than in run {before.key.run_id}"
    return "; ".join(
        f"{alias}: {was.get(alias, 'not read')} until run {before.key.run_id}, then {now[alias]}"
        for alias in differing
    )


def _reads(task: TaskSummary) -> tuple[int, int]:
    read = task.read_bytes
    return _NO_BYTES if read is None else read, task.last.kept


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of the known numbers; ``None`` if none is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
