"""The stages of a run one by one, and jobs as most tests want them."""

from __future__ import annotations

from dataclasses import asdict, replace

from airflow_hive_opt.documents.clock import Clock
from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.spark.application import required_partitions as keys
from airflow_hive_opt.spark.application.completion import Result, completed
from airflow_hive_opt.spark.application.run import Run
from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.statement.settings import CORRELATION, Settings

_OF_GATES = ("max_partitions", "max_bytes", "on_empty", "on_no_prune")


def job_of(sql: str, settings: Settings | None = None, **options) -> Job:
    """A job that does not rewrite correlated queries, unless ``settings`` say so.

    ``options`` are the job's fields, and those of its gates.
    """
    gates = Gates(**{name: options.pop(name) for name in _OF_GATES if name in options})
    if settings:
        options = {"switches": asdict(settings.switches), **options}
    hive_conf = dict(settings.values) if settings else {CORRELATION: "false"}
    return Job(sql, hive_conf=hive_conf, gates=gates, **options)


def prune(session, job: Job, path, hand_over: bool = True) -> Report:
    """Runs the local task."""
    return Run(session, job, path).local_task(hand_over)


def join(session, job: Job, pruned: Report, path) -> Result:
    """Runs the map join after a local task in the same application."""
    result = Run(session, job, path).map_join(pruned.descriptor, fewer_joins=pruned.fewer_joins)
    report = replace(
        result.report,
        seconds={**pruned.seconds, **result.report.seconds},
        work={**pruned.work, **result.report.work},
    )
    return replace(result, report=report)


def map_join(session, job: Job, path, digest: str) -> Result:
    """Runs the map join after a local task in another application."""
    return Run(session, job, path).map_join_of(path, digest)


def reported(session, job: Job, result: Result) -> Report:
    """The report of a statement that has run, with what it read."""
    clock = Clock()
    clock.seconds.update(result.report.seconds)
    return completed(job, result, catalog_of(session), clock)


def required_partitions(session, job: Job, only=()) -> list[Required]:
    """The partitions that the keys require."""
    for name, value in job.session_conf.items():
        session.conf.set(name, value)
    return keys.required_partitions(session, catalog_of(session), job, only)
