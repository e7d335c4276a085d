"""Judges from the times of a task's own runs whether its key indexes pay.

Lookups in an index, and above all the keys of a large table, may take longer than the files that
they save. Only the times of whole runs tell. So after a run with indexes the next one leaves them
out, and then the quicker way stays. If indexes are slower, they are tried again after
:data:`~airflow_hive_opt.local_task.earlier_runs.RUNS_WITHOUT_KEYS` runs. Where they clearly pay,
no run leaves them out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Optional

from airflow_hive_opt.documents.indexed_scans import IndexCode, IndexUse
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import LOCAL_TASK, MAP_JOIN
from airflow_hive_opt.local_task.earlier_runs import RUNS_WITHOUT_KEYS

log = logging.getLogger(__name__)
_CLEARLY = 10  # times as many files without the indexes
_LONGEST = 600.0  # seconds that a run without indexes may be expected to take


@dataclass(frozen=True)
class IndexTrial:
    """The seconds of the last runs of a task.

    ``used`` is the time with indexes, ``left_out`` the time without them; ``None`` if there was no
    such run. ``runs`` is the number of runs in a row without them.

    >>> IndexTrial().uses_indexes, IndexTrial(8.0).uses_indexes
    (True, False)
    >>> IndexTrial(4.0, 6.0).uses_indexes, IndexTrial(8.0, 6.0, 1).uses_indexes
    (True, False)
    >>> IndexTrial(8.0, 6.0, 9).uses_indexes
    True
    """

    used: Optional[float] = None
    left_out: Optional[float] = None
    runs: int = 0

    @property
    def uses_indexes(self) -> bool:
        """Whether the next run uses the indexes."""
        if self.used is None or self.runs >= RUNS_WITHOUT_KEYS:
            return True
        return self.left_out is not None and self.used < self.left_out


def index_path_of(job: Job) -> str:
    """The job's ``index_path``; empty, with a line in the log, if this run leaves indexes out."""
    trial = IndexTrial(**job.index_trial)
    if not job.index_path or trial.uses_indexes:
        return job.index_path
    if trial.left_out is None:
        log.info("key indexes are left out, to compare: a run with them took %.1f s", trial.used)
    else:
        log.info(
            "key indexes are left out: a run with them took %.1f s, without them %.1f s",
            *(trial.used, trial.left_out),
        )
    return ""


def trial_after(job: Job, uses: Sequence[IndexUse], seconds: Mapping[str, float]) -> dict[str, Any]:
    """What the next run must know; empty if there is nothing to compare.

    ``uses`` are those of the run, ``seconds`` its times by phase.
    """
    if not job.index_path or not {LOCAL_TASK, MAP_JOIN} <= seconds.keys():
        return {}
    took = round(seconds[LOCAL_TASK] + seconds[MAP_JOIN], 3)
    trial = IndexTrial(**job.index_trial)
    if not trial.uses_indexes:
        return asdict(replace(trial, left_out=took, runs=trial.runs + 1))
    used = [use for use in uses if use.code == IndexCode.USED]
    if not used or _pay_clearly(used, seconds[MAP_JOIN]):
        return {}
    return asdict(replace(trial, used=took, runs=0))


def _pay_clearly(uses: Sequence[IndexUse], seconds: float) -> bool:
    """Whether the statement would read far more without the indexes; it took ``seconds``."""
    files = sum(use.files or 0 for use in uses)
    all_files = sum(use.total_files or 0 for use in uses)
    more = all_files / max(files, 1)
    return more > _CLEARLY or seconds * more > _LONGEST
