"""Tells of a statement that is about to begin.

A submitted application tells the attempts of its task, and learns from them that it must not begin.
So does a run on the embedded Spark whose statement adds rows. A run over Spark Connect tells of a
statement that is about to write.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.remote_operation import OperationId, OverwrittenPartition
from airflow_hive_opt.documents.report import Report, headline, keep_report
from airflow_hive_opt.spark.application.driver_id import id_on_cluster
from airflow_hive_opt.spark.application.written_since import (
    MayHaveWritten,
    why_it_may_have_written,
)
from airflow_hive_opt.statement.added_rows import commits_in_steps, may_repeat_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.spark.map_join.execution import Beginning

Begins = Optional[Callable[[OperationId, Outcome, Optional[OverwrittenPartition]], Optional[float]]]
"""Gets an operation before it begins, and the outcome of the run if it succeeds.

The third argument is the partition that the operation replaces if its query returns rows.

Returns after how many seconds the run leaves the operation to the server and raises
``LeftRunning``; ``None``: it waits for its end. If it raises an error, the operation does not
begin.
"""


def begin_claimed(
    session: SparkSession, job: Job, path: StoragePath, application_id: str | None
) -> None:
    """Begins the statement of a job whose attempt has a claim; does nothing without a token.

    Raises ``MayHaveWritten``, ``Superseded``, ``DescriptorError``, and Spark's errors.
    """
    id_, in_steps = id_on_cluster(session, application_id), commits_in_steps(job.statement)
    since = claims.begin(path, job.token, id_, in_steps)
    if since is None or not may_repeat_rows(job.statement):
        return
    if (why := why_it_may_have_written(session, job.statement, since)) is not None:
        raise MayHaveWritten(
            "an earlier attempt of this task has begun this statement and has not reported that it "
            f"failed before its commit, so its rows, or some of them, may be there: {why}. Make "
            "sure that its Spark has ended, and look at the table. If all of its rows are there, "
            "mark the task as successful. Otherwise remove those that are there and clear the task"
        )


def kept_for_retry(
    session: SparkSession,
    begins: Begins,
    report: Report,
    beginning: Beginning,
    job: Job,
    path: StoragePath,
) -> AbstractContextManager[None]:
    """The block in which a text runs; ``report`` is that of the run.

    A later attempt can find the statement on the server. The report is stored before it begins.
    """
    if begins is None:
        return nullcontext()
    from airflow_hive_opt.spark.session.kept_operation import kept  # needs gRPC

    done = Outcome(
        *(Status.DONE, headline(report.descriptor), report.summary()),
        statement=beginning.text,
        token=job.token,
    )

    def told(found: OperationId) -> float | None:
        seconds = begins(found, done, beginning.before)
        keep_report(report, path)
        return seconds

    return kept(session, told)
