"""The sums of many runs, task by task, without keeping the runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_hive_opt.pages.models import Trend
from airflow_hive_opt.pages.task_run import BriefRun
from airflow_hive_opt.pruning.reasons import Reason


@dataclass
class TaskSums:
    """The sums of one task's runs, which are added in order of time.

    Partitions and bytes are of the runs that ran the statement. Bytes are ``None`` if no run knows
    them, and ``estimated`` if the pruned bytes of a run are.
    """

    runs: int = 0
    pruned_partitions: int = 0
    pruned_bytes: int | None = None
    estimated: bool = False
    read_bytes: int | None = None
    last: BriefRun | None = None
    # by map index
    _newest: dict[int, BriefRun] = field(default_factory=dict)
    _before: dict[int, BriefRun] = field(default_factory=dict)
    _pruned_before: set[int] = field(default_factory=set)

    def add(self, run: BriefRun) -> None:
        """Adds the next run."""
        figures, index = run.figures, run.key.map_index
        self.runs += 1
        if figures.has_joined:
            self.pruned_partitions += figures.total - figures.kept
            self.estimated |= figures.estimated
            self.pruned_bytes = plus(self.pruned_bytes, figures.pruned_bytes)
            self.read_bytes = plus(self.read_bytes, figures.read_bytes)
        self.last = run
        if (newest := self._newest.get(index)) is not None:
            self._before[index] = newest
            if newest.figures.reason == Reason.PRUNED:
                self._pruned_before.add(index)
        self._newest[index] = run

    @property
    def before_last(self) -> BriefRun | None:
        """The run before the last one, of the same map index."""
        return None if self.last is None else self._before.get(self.last.key.map_index)

    @property
    def trend(self) -> Trend:
        """Whether the last run prunes, and whether an earlier one pruned more scans."""
        if self.last is None:
            return "nothing pruned"
        before, prunes = self.before_last, self.last.figures.reason == Reason.PRUNED
        lost = before is not None and _lost(before, self.last)
        whole = not prunes and self.last.figures.reason != Reason.NOT_ASKED_AGAIN
        if lost or (whole and self.last.key.map_index in self._pruned_before):
            return "worse"
        return "pruned" if prunes else "nothing pruned"


def sums_of(runs: Iterable[BriefRun]) -> dict[tuple[str, str], TaskSums]:
    """The sums by DAG and task; ``runs`` are in order of time."""
    found: dict[tuple[str, str], TaskSums] = {}
    for run in runs:
        of_task = found.get(run.key[:2])
        if of_task is None:
            of_task = found[run.key[:2]] = TaskSums()
        of_task.add(run)
    return found


def plus(one: int | None, other: int | None) -> int | None:
    """The sum of the numbers that are known; ``None`` if none is.

    >>> plus(1, None), plus(None, None), plus(1, 2)
    (1, None, 3)
    """
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _lost(before: BriefRun, after: BriefRun) -> bool:
    """Whether a scan that was pruned is not pruned any more."""
    now = dict(after.figures.scans)
    return any(
        code == Reason.PRUNED
        and now.get(alias, Reason.PRUNED) not in (Reason.PRUNED, Reason.NOT_ASKED_AGAIN)
        for alias, code in before.figures.scans
    )
