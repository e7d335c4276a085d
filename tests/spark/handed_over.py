"""The second job of the split form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from airflow_hive_opt.documents.job import Job, Outcome, Stages


def map_join_of(local_task: Job, pruned: Outcome) -> Job:
    """The map join job for the partition list of a local task."""
    return replace(
        local_task,
        path=str(Path(local_task.path).with_name("2.json")),
        stages=Stages.MAP_JOIN,
        descriptor=str(pruned.summary["uri"]),
        digest=str(pruned.summary["digest"]),
    )
