"""Judges from the times of a task's own runs whether its key indexes pay.

Lookups in an index, and above all the keys of a large table, may take longer than the files that
they save. Only the times of whole runs tell. So some runs of a task go the other way: they leave
the indexes out, or use them although they were slower. The other runs go the quicker way. No run
leaves out indexes without which it would read far more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.indexed_scans import IndexCode, IndexTrial
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import LOCAL_TASK, MAP_JOIN

log = logging.getLogger(__name__)
_FAR_MORE = 10  # times as many files without the indexes
_LONGEST = 600.0  # seconds that a run without indexes may be expected to take


def index_path_of(job: Job) -> str:
    """The job's ``index_path``; empty, with a line in the log, if this run leaves indexes out."""
    trial = job.index_trial
    if not job.index_path or trial.uses_indexes:
        return job.index_path
    if trial.compares:
        log.info("key indexes are left out, to compare: with them a run took %.1f s", trial.used)
    else:
        log.info(
            "key indexes are left out: with them a run took %.1f s, without them %.1f s",
            *(trial.used, trial.left_out),
        )
    return ""


def trial_after(job: Job, descriptor: Descriptor, seconds: Mapping[str, float]) -> dict[str, Any]:
    """What the task's next run must know; empty if there is nothing to compare.

    ``seconds`` are the times of the run by phase.
    """
    if not job.index_path or not {LOCAL_TASK, MAP_JOIN} <= seconds.keys():
        return {}
    took = round(seconds[LOCAL_TASK] + seconds[MAP_JOIN], 3)
    trial = job.index_trial
    if not trial.uses_indexes:
        known = replace(
            trial,
            skipped_keys=_one_more({**trial.skipped_keys, **job.skipped_keys}),
            skipped_indexes=_one_more({**trial.skipped_indexes, **job.skipped_indexes}),
        )
        return _plain(replace(known, left_out=took) if trial.counts else known)
    trial = replace(trial, skipped_keys={}, skipped_indexes={})  # the run's decisions say it
    files = list(_files(descriptor))
    if not files or _reads_far_more(files, seconds[MAP_JOIN]):
        return {}
    if not trial.counts or _has_read_useless_keys(descriptor):
        return _plain(trial)
    return _plain(replace(trial, used=took))


def _one_more(runs: Mapping[str, int]) -> dict[str, int]:
    """The numbers of runs, with this one."""
    return {name: count + 1 for name, count in runs.items()}


def _plain(trial: IndexTrial) -> dict[str, Any]:
    """The fields that later runs must know."""
    found = asdict(trial)
    del found["compares"], found["counts"]
    return found


def _files(descriptor: Descriptor) -> Iterator[tuple[int, int]]:
    """For each scan with an index that was used: the files read, and at most so many without it."""
    planned = {found.scan: found for found in descriptor.planned_files}
    uses = {use.scan: use for use in descriptor.index_uses if use.code == IndexCode.USED}
    for scan, use in uses.items():
        read = use.hop.files if use.hop else scan in planned and planned[scan].files
        without = use.hop.files_without if use.hop else use.total_files
        yield (read or 0), (without or 0)


def _reads_far_more(files: list[tuple[int, int]], seconds: float) -> bool:
    """Whether the statement, which took ``seconds``, may read far more without the indexes."""
    more = sum(without for _, without in files) / max(sum(read for read, _ in files), 1)
    return more > _FAR_MORE or seconds * more > _LONGEST


def _has_read_useless_keys(descriptor: Descriptor) -> bool:
    """Whether the run has read keys that the next runs will not read."""
    found = [decision.skipped_keys for decision in descriptor.decisions]
    found += [use.skipped_keys for use in descriptor.index_uses]
    return any(skipped is not None and skipped.runs == 0 for skipped in found)
