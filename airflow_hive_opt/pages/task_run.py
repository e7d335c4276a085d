"""A task instance and the figures of its run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from airflow_hive_opt.runtime.figures import Figures


@dataclass(frozen=True)
class TaskRun:
    """One task instance of ours and its figures."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    figures: Figures
    logical_date: datetime | None
    run_after: datetime
    try_number: int
    state: str | None
    start_date: datetime | None
    duration: float | None
