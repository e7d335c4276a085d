"""Judges from the times of a task's own runs whether its key indexes pay, and pruning at all.

Lookups in an index, and above all the keys of a large table, may take longer than the files that
they save; Spark prunes lake tables by itself too. Only the times of whole runs tell. So some runs
of a task try another arm: they leave the indexes out, or the whole statement to Spark as it is. The
other runs go the way that was quickest. No run goes a way on which it might take long.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.index_trial import IndexTrial, TrialArm
from airflow_hive_opt.documents.indexed_scans import IndexCode, reading_cost
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import LOCAL_TASK, MAP_JOIN
from airflow_hive_opt.statement.template import template_digest

log = logging.getLogger(__name__)
_LONGEST = 300.0  # seconds that a statement may be expected to take on another arm
_FAR_SLOWER = 2  # times as long as the quickest arm
_OF_THIS_RUN = ("tries", "tries_far_slower", "counts", "is_retry")
_IN_WORDS = {
    TrialArm.USED: "with key indexes",
    TrialArm.LEFT_OUT: "without key indexes",
    TrialArm.UNTOUCHED: "as the statement is",
}


def arm_of(job: Job) -> TrialArm:
    """How the job's run goes: the quickest way, or another one to compare.

    Without ``index_path`` there is nothing to compare.
    """
    return _arm_of(_trial_of(job)) if job.index_path else TrialArm.LEFT_OUT


def index_path_of(job: Job) -> str:
    """The job's ``index_path``; empty, with a line in the log, if this run leaves indexes out."""
    if not job.index_path:
        return ""
    trial = _trial_of(job)
    arm = _arm_of(trial)
    if arm is TrialArm.USED:
        return job.index_path
    why = "which was quickest" if arm is _quickest(trial) else "to compare"
    took = ", ".join(f"{_IN_WORDS[arm]} {took:.1f} s" for arm, took in trial.seconds.items())
    log.info("this run goes %s, %s; the task's last runs: %s", _IN_WORDS[arm], why, took)
    return ""


def trial_after(
    job: Job, descriptor: Descriptor, seconds: Mapping[str, float], reads_hive_tables: bool
) -> dict[str, Any]:
    """What the task's next run must know; empty if there is nothing to compare.

    ``seconds`` are the times of the run by phase. ``reads_hive_tables`` says that the statement
    reads partitioned tables of a metastore.
    """
    if not job.index_path or not {LOCAL_TASK, MAP_JOIN} <= seconds.keys():
        return {}
    took = round(seconds[LOCAL_TASK] + seconds[MAP_JOIN], 3)
    trial = _trial_of(job)
    arm = _arm_of(trial)
    if arm is not TrialArm.USED:
        known = replace(
            trial,
            skipped_keys=_one_more({**trial.skipped_keys, **job.skipped_keys}),
            skipped_indexes=_one_more({**trial.skipped_indexes, **job.skipped_indexes}),
        )
        return _plain(known.with_seconds(arm, took) if trial.counts else known)
    trial = replace(trial, skipped_keys={}, skipped_indexes={})  # the run's decisions say it
    files = list(_files(descriptor))
    if not files or _may_take_long(files, seconds[MAP_JOIN]):
        return {}
    may_be_untouched = not reads_hive_tables and _may_be_untouched(
        job, descriptor, seconds[MAP_JOIN]
    )
    trial = replace(trial, may_be_untouched=may_be_untouched)
    if not trial.counts or _has_read_useless_keys(descriptor):
        return _plain(trial)
    return _plain(trial.with_seconds(arm, took))


def _trial_of(job: Job) -> IndexTrial:
    """What is known of the job's statement: the task may have had another one."""
    trial, digest = job.index_trial, template_digest(job.statement)
    if trial.statement == digest:
        return trial
    return IndexTrial(digest, counts=trial.counts, is_retry=trial.is_retry)


def _arm_of(trial: IndexTrial) -> TrialArm:
    if trial.is_retry or trial.used is None:
        return TrialArm.USED
    quickest, tried = _quickest(trial), trial.tries
    if tried is None or (tried is TrialArm.UNTOUCHED and not trial.may_be_untouched):
        return quickest
    is_far_slower = trial.seconds.get(tried, 0) > _FAR_SLOWER * trial.seconds[quickest]
    return quickest if is_far_slower and not trial.tries_far_slower else tried


def _quickest(trial: IndexTrial) -> TrialArm:
    times = trial.seconds
    if not trial.may_be_untouched:
        times.pop(TrialArm.UNTOUCHED, None)
    return min(times, key=lambda arm: times[arm])


def _one_more(runs: Mapping[str, int]) -> dict[str, int]:
    """The numbers of runs, with this one."""
    return {name: count + 1 for name, count in runs.items()}


def _plain(trial: IndexTrial) -> dict[str, Any]:
    """The fields that later runs must know."""
    return {name: value for name, value in asdict(trial).items() if name not in _OF_THIS_RUN}


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


def _may_be_untouched(job: Job, descriptor: Descriptor, seconds: float) -> bool:
    """Whether a run may leave the statement, which took ``seconds``, to Spark as it is.

    Not a MERGE, UPDATE or DELETE: as it is, it fails because of other writers that the pruned one
    does not notice. Not if other tasks need the keys or the snapshots of the run. Spark reads at
    most all files of the pruned tables, if their number is known.
    """
    if descriptor.changes is not None or job.hold_snapshots or job.key_sets:
        return False
    read, every = 0, 0
    by_hop = {
        use.scan: use
        for use in descriptor.index_uses
        if use.code == IndexCode.USED and use.hop is not None
    }
    planned = {each.scan: each for each in descriptor.planned_files}
    for scan in {**planned, **by_hop}:
        own, use = planned.get(scan), by_hop.get(scan)
        kept = use.hop if use else own
        totals = [each.total_files for each in (own, use) if each and each.total_files is not None]
        if kept is None or kept.files is None or not totals:
            return False
        sizes = 0, 0
        if own and kept.bytes is not None and own.total_bytes is not None:
            sizes = kept.bytes, own.total_bytes
        read += reading_cost(kept.files, sizes[0])
        every += reading_cost(totals[0], sizes[1])
    return seconds * every <= _LONGEST * max(read, reading_cost(1, 0))


def _has_read_useless_keys(descriptor: Descriptor) -> bool:
    """Whether the run has read keys that the next runs will not read."""
    found = [decision.skipped_keys for decision in descriptor.decisions]
    found += [use.skipped_keys for use in descriptor.index_uses]
    return any(skipped is not None and skipped.runs == 0 for skipped in found)
