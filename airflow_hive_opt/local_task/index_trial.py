"""Judges from the times of a task's own runs whether its key indexes pay, and pruning at all.

Lookups in an index, and above all the keys of a large table, may take longer than the files that
they save; Spark prunes lake tables by itself too. Only the times of whole runs tell. So some runs
of a task go another way to compare: they leave the indexes out, or the whole statement to Spark as
it is. The other runs go the quickest way. No run goes a way on which it might take long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.index_trial import IndexTrial, Way, digest
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import LOCAL_TASK, MAP_JOIN

log = logging.getLogger(__name__)
_LONGEST = 300.0  # seconds that a statement may be expected to take on another way
_IN_WORDS = {
    Way.KEYS: "leaves its key indexes out",
    Way.UNTOUCHED: "leaves the statement to Spark as it is",
}


def way_of(job: Job) -> Way:
    """How the job's run goes; without ``index_path`` there is nothing to compare."""
    return _trial_of(job).way if job.index_path else Way.KEYS


def index_path_of(job: Job) -> str:
    """The job's ``index_path``; empty, with a line in the log, if this run leaves indexes out."""
    way, trial = way_of(job), _trial_of(job)
    if not job.index_path or way is Way.INDEXES:
        return job.index_path
    why = "to compare" if trial.seconds[way] is None or trial.compares else "which was quickest"
    took = ", ".join(
        f"{name}: {'not known' if seconds is None else f'{seconds:.1f} s'}"
        for name, seconds in trial.seconds.items()
    )
    log.info("this run %s, %s; the last runs by their way: %s", _IN_WORDS[way], why, took)
    return ""


def trial_after(job: Job, descriptor: Descriptor, seconds: Mapping[str, float]) -> dict[str, Any]:
    """What the task's next run must know; empty if there is nothing to compare.

    ``seconds`` are the times of the run by phase.
    """
    if not job.index_path or not {LOCAL_TASK, MAP_JOIN} <= seconds.keys():
        return {}
    took = round(seconds[LOCAL_TASK] + seconds[MAP_JOIN], 3)
    trial, way = _trial_of(job), way_of(job)
    if way is not Way.INDEXES:
        known = replace(
            trial,
            skipped_keys=_one_more({**trial.skipped_keys, **job.skipped_keys}),
            skipped_indexes=_one_more({**trial.skipped_indexes, **job.skipped_indexes}),
        )
        return _plain(known.with_seconds(way, took) if trial.counts else known)
    trial = replace(trial, skipped_keys={}, skipped_indexes={})  # the run's decisions say it
    files = list(_files(descriptor))
    if not files or _may_take_long(files, seconds[MAP_JOIN]):
        return {}
    trial = replace(trial, may_be_untouched=_may_be_untouched(descriptor, seconds[MAP_JOIN]))
    if not trial.counts or _has_read_useless_keys(descriptor):
        return _plain(trial)
    return _plain(trial.with_seconds(way, took))


def _trial_of(job: Job) -> IndexTrial:
    """What is known of the job's statement: the task may have had another one."""
    of_statement = digest(job.statement)
    if job.index_trial.statement == of_statement:
        return job.index_trial
    return IndexTrial(of_statement, counts=job.index_trial.counts)


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


def _may_take_long(files: list[tuple[int, int]], seconds: float) -> bool:
    """Whether the statement, which took ``seconds``, may take long without the indexes."""
    more = sum(without for _, without in files) / max(sum(read for read, _ in files), 1)
    return seconds * more > _LONGEST


def _may_be_untouched(descriptor: Descriptor, seconds: float) -> bool:
    """Whether a run may leave the statement, which took ``seconds``, to Spark as it is.

    Not if a table's partitions are in a metastore: Spark would fetch all of them. Otherwise Spark
    reads at most all files of the pruned tables, if their number is known.
    """
    if descriptor.targets:
        return False
    files = {each.scan: (each.files, each.total_files) for each in descriptor.planned_files}
    for use in descriptor.index_uses:
        if use.code == IndexCode.USED and use.hop:
            files[use.scan] = use.hop.files, use.total_files
    known = [(read, every) for read, every in files.values() if None not in (read, every)]
    more = sum(every or 0 for _, every in known) / max(sum(read or 0 for read, _ in known), 1)
    return len(known) == len(files) and seconds * more <= _LONGEST


def _has_read_useless_keys(descriptor: Descriptor) -> bool:
    """Whether the run has read keys that the next runs will not read."""
    found = [decision.skipped_keys for decision in descriptor.decisions]
    found += [use.skipped_keys for use in descriptor.index_uses]
    return any(skipped is not None and skipped.runs == 0 for skipped in found)
