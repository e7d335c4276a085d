"""Completes the report of a statement that has run."""

from __future__ import annotations

import logging
from dataclasses import replace

from airflow_hive_opt.documents.report import REPORT, Report, StageSummary
from airflow_hive_opt.explain.stages import stages_of
from airflow_hive_opt.spark.application.request import Request, Result
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.correlate import StatisticsCatalog
from airflow_hive_opt.spark.map_join.table_reads import table_reads
from airflow_hive_opt.spark.session.best_effort import best_effort
from airflow_hive_opt.spark.session.clock import Clock
from airflow_hive_opt.statement.errors import PlanError

log = logging.getLogger(__name__)


def completed(request: Request, result: Result, catalog: SessionCatalog) -> Report:
    """The report of a statement that has run, with what Spark read and with Hive's stages.

    A table that the local task has looked up in ``catalog`` is not looked up again. A failure only
    leaves these parts out: the statement must not run again.
    """
    found = best_effort(lambda: _completed(request, result, catalog))
    return result.report if found is None else found


def _completed(request: Request, result: Result, catalog: SessionCatalog) -> Report:
    plan = result.plan
    clock = Clock(catalog.work)
    with clock.phase(REPORT):
        reads = best_effort(lambda: table_reads(plan(), catalog)) if plan else None
        stages = best_effort(lambda: _stages(catalog, request))
    return replace(
        result.report,
        reads=reads or (),
        stages=stages or (),
        seconds={**result.report.seconds, **clock.seconds},
        work={**result.report.work, **clock.work},
    )


def _stages(catalog: SessionCatalog, request: Request) -> tuple[StageSummary, ...]:
    try:
        described = StatisticsCatalog(catalog, columns=())
        return stages_of(request.sql, described, request.settings)
    except PlanError as error:
        log.debug("Hive rejects the statement: %s", error)
        return ()
