"""What a run's outcome is for the task: its log, which many may read, and its exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    redact,
)
from airflow_hive_opt.runtime.log_text import plain

if TYPE_CHECKING:
    from airflow_hive_opt.spark.application.job import Outcome


def masked(text: str) -> str:
    """The text without what Airflow knows to be a secret."""
    return str(redact(text))


def log_outcome(log: Any, outcome: Outcome) -> None:
    """A SELECT's first rows, work by phase, and in the last line what was kept.

    Rows may hold secrets, which are masked, and what would act on the log, which is escaped.
    """
    if outcome.columns and outcome.rows:
        log.info("the first %d rows:", len(outcome.rows))
        for row in (outcome.columns, *outcome.rows):
            log.info("%s", "\t".join(plain(masked(value)) for value in row))
    summary = outcome.summary or {}
    for phase, seconds in summary.get("seconds", {}).items():
        if (work := summary["work"][phase]) is None:
            log.info("%s: %.1f s, over Spark Connect its work is not told", phase, seconds)
            continue
        log.info(
            "%s: %.1f s, %d metastore calls, %d partitions fetched, %d files listed",
            phase,
            seconds,
            work["metastore_calls"],
            work["partitions_fetched"],
            work["files_listed"],
        )
    log.info("%s", masked(outcome.message))


def raise_unless_done(outcome: Outcome) -> None:
    """Raises what Airflow understands where the job did not do its work."""
    from airflow_hive_opt.spark.application.job import Status

    message = masked(outcome.message)
    if outcome.status is Status.FAILED:
        raise AirflowException(message)
    if outcome.status is Status.REFUSED:
        raise AirflowFailException(message)
    if outcome.status is Status.NOTHING_TO_DO:
        raise AirflowSkipException(message)
