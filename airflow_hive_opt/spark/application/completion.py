"""Makes the report and the outcome of a statement that has run.

No error here may cause a retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.clock import Clock
from airflow_hive_opt.documents.index_trial import TrialArm
from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.report import REPORT, Report, StageSummary, headline, keep_report
from airflow_hive_opt.explain.stages import stages_of
from airflow_hive_opt.local_task.index_trial import arm_of, trial_after
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.correlate import StatisticsCatalog
from airflow_hive_opt.spark.map_join.table_reads import table_reads
from airflow_hive_opt.statement.errors import PlanError

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Result:
    """A run's report, a SELECT's columns and first rows, and the statement that Spark ran.

    ``plan`` returns the JVM's plan that has run; it is ``None`` if the plan is not known.
    """

    report: Report
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    statement: str
    plan: Callable[[], Any] | None = None


def outcome_of(
    job: Job,
    result: Result,
    digest: str,
    path: StoragePath,
    catalog: SessionCatalog,
    clock: Clock,
) -> Outcome:
    """Writes the report next to ``path``; ``digest`` is the descriptor's, from the local task."""
    report = completed(job, result, catalog, clock)
    if report.descriptor.digest != digest:
        report = _with_own_descriptor(report, path)
    keep_report(report, path)
    return Outcome(
        Status.DONE,
        headline(report.descriptor),
        report.summary(),
        result.columns,
        tuple(tuple(map(_text, row)) for row in result.rows),
        result.statement,
    )


def completed(job: Job, result: Result, catalog: SessionCatalog, clock: Clock) -> Report:
    """The report with what Spark read and with Hive's stages; a part that fails is left out.

    A table that the run has looked up in ``catalog`` is not looked up again.
    """
    plan = result.plan
    with clock.phase(REPORT, lambda: best_effort(catalog.work)):
        reads = best_effort(lambda: table_reads(plan(), catalog)) if plan else None
        arm, stages = arm_of(job), None
        if arm is not TrialArm.UNTOUCHED:  # which should cost no more than plain Spark
            stages = best_effort(lambda: _stages(catalog, job))
        reads_hive_tables = arm is TrialArm.USED and (
            best_effort(lambda: _reads_hive_tables(result, catalog)) is not False
        )
    return replace(
        result.report,
        reads=reads or (),
        stages=stages or (),
        index_trial=trial_after(job, result.report.descriptor, clock.seconds, reads_hive_tables),
        seconds=dict(clock.seconds),
        work=dict(clock.work),
    )


def _with_own_descriptor(report: Report, path: StoragePath) -> Report:
    """The report of a run whose descriptor is not its local task's, with its own descriptor.

    A reader of the report's URI must find the lists and the files as the statement used them.
    """
    try:
        descriptors.write(report.descriptor, path)
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning(
            "the descriptor can't be updated, so it is not that of the statement that ran: %s",
            error,
        )
    return replace(report, uri=str(path))


def _stages(catalog: SessionCatalog, job: Job) -> tuple[StageSummary, ...]:
    try:
        described = StatisticsCatalog(catalog, columns=())
        return stages_of(job.statement, described, job.settings)
    except PlanError as error:
        log.debug("Hive rejects the statement: %s", error)
        return ()


def _reads_hive_tables(result: Result, catalog: SessionCatalog) -> bool:
    """Whether the statement reads partitioned tables of a metastore."""
    tables = [catalog.table(each.scan.table) for each in result.report.descriptor.decisions]
    return any(table is not None and not table.provider for table in tables)


def _text(value: object) -> str:
    return "NULL" if value is None else str(value)
