"""Tells of a statement that is about to write on a Spark Connect server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.documents.report import Report, headline, keep_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath

Begins = Optional[Callable[[OperationId, Outcome], Optional[float]]]
"""Gets an operation before it begins, and the outcome of the run if it succeeds.

Returns after how many seconds the run leaves the operation to the server and raises
``LeftRunning``; ``None``: it waits for its end. If it raises an error, the operation does not
begin.
"""


def kept_for_retry(
    session: SparkSession, begins: Begins, report: Report, text: str, job: Job, path: StoragePath
) -> AbstractContextManager[None]:
    """The block in which ``text`` runs; ``report`` is that of the run.

    A later attempt can find the statement on the server. The report is stored before it begins.
    """
    if begins is None:
        return nullcontext()
    from airflow_hive_opt.spark.session.kept_operation import kept  # needs gRPC

    done = Outcome(
        *(Status.DONE, headline(report.descriptor), report.summary()),
        statement=text,
        token=job.token,
    )

    def told(found: OperationId) -> float | None:
        seconds = begins(found, done)
        keep_report(report, path)
        return seconds

    return kept(session, told)
