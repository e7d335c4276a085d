"""Runs a statement with its keys, and beside it as plain Spark does."""

from __future__ import annotations

from dataclasses import dataclass

from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.documents.report import Report
from airflow_hive_opt.spark.application.completion import Result
from tests.spark.stages import job_of, join, map_join, prune, reported


@dataclass(frozen=True)
class Outcome:
    """A run's report, the statement that ran, and a SELECT's rows, sorted."""

    report: Report
    statement: str
    rows: list[tuple]

    @property
    def reasons(self) -> dict[str, str]:
        """The reason codes by alias."""
        return {found.scan.alias: found.reason for found in self.report.descriptor.decisions}

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """The values by restricted column."""
        return {found.column: found.values for found in self.report.descriptor.row_filters}

    def files(self, table: str) -> int | None:
        """The files that were read of a table."""
        return next(read.files for read in self.report.reads if read.table == table)


def run(session, sql: str, path, **options) -> Outcome:
    """Both stages in one application."""
    job = job_of(sql, show_rows=100_000, **options)
    file = UPath(path) / "descriptor.json"
    pruned = prune(session, job, file, hand_over=False)
    return _outcome(session, job, join(session, job, pruned, file))


def run_apart(session, sql: str, path, between=lambda: None, **options) -> Outcome:
    """The stages as two applications; ``between`` is called between them."""
    job = job_of(sql, show_rows=100_000, **options)
    file = UPath(path) / "descriptor.json"
    pruned = prune(session, job, file)
    between()
    result = map_join(session, job, file, pruned.descriptor.digest)
    return _outcome(session, job, result)


def _outcome(session, job: Job, result: Result) -> Outcome:
    report = reported(session, job, result)
    return Outcome(report, result.statement, sorted(result.rows, key=repr))


def rows_of(session, sql: str) -> list[tuple]:
    """Plain Spark's rows, sorted."""
    return sorted(map(tuple, session.sql(sql).collect()), key=repr)
