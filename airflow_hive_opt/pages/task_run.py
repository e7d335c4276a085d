"""A task instance and the figures of its run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from airflow_hive_opt.documents.figures import Figures


class InstanceKey(NamedTuple):
    """The ids of a task instance."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int


class BriefRun(NamedTuple):
    """The figures of a task instance; there are many in the sums of 30 days."""

    key: InstanceKey
    figures: Figures


@dataclass(frozen=True)
class TaskRun:
    """One task instance of ours and its figures."""

    key: InstanceKey
    figures: Figures
    logical_date: datetime | None
    run_after: datetime
    try_number: int
    state: str | None
    start_date: datetime | None
    duration: float | None

    @property
    def brief(self) -> BriefRun:
        """The ids and the figures."""
        return BriefRun(self.key, self.figures)
