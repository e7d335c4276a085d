"""The outcome of a run that an error has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.binding import OtherSession
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Outcome, Status
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.metastores.required import TooManyRequiredPartitions
from airflow_hive_opt.spark.application.written_since import MayHaveWritten
from airflow_hive_opt.spark.map_join.dynamic_overwrite import NotEmptied
from airflow_hive_opt.spark.map_join.job_attempt import RowsMayBeMissing
from airflow_hive_opt.spark.session.statement_errors import is_refusal, may_follow_commit
from airflow_hive_opt.statement.errors import PlanError

if TYPE_CHECKING:
    from airflow_hive_opt.documents.report import Report

_WRITTEN = (RowsMayBeMissing, MayHaveWritten, NotEmptied)
_REFUSALS = (PlanError, OtherSession, TooManyRequiredPartitions, *_WRITTEN)
FAILURES = (*_REFUSALS, DescriptorError, PySparkException, Py4JError, ConnectionError)
"""The errors that :func:`outcome_of_failure` knows; any other one is a fault of this package."""


def outcome_of_failure(error: Exception, pruned: Report | None) -> Outcome:
    """The outcome after one of :data:`FAILURES`; ``pruned`` is the local task's report, if any."""
    is_final = isinstance(error, _REFUSALS) or is_refusal(error)
    return Outcome(
        Status.REFUSED if is_final else Status.FAILED,
        in_words(error),
        pruned.summary() if pruned else None,
        may_have_written=isinstance(error, _WRITTEN) or may_follow_commit(error),
    )
