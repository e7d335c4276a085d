"""Turns a run's outcome into the task's XComs, log lines and exception."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.links.pages import DESCRIPTOR_KEY
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    redact,
)
from airflow_hive_opt.runtime.figures import FIGURES_KEY, figures_of
from airflow_hive_opt.runtime.log_text import plain

if TYPE_CHECKING:
    from airflow_hive_opt.spark.application.job import Outcome


log = logging.getLogger(__name__)


def push_for_pages(instance: Any, summary: Mapping[str, Any]) -> None:
    """Pushes the XComs that the pages and the links of a task instance read.

    A failure of the figures is only logged: the statement may have run.
    """
    instance.xcom_push(key=DESCRIPTOR_KEY, value=summary["uri"])
    try:
        instance.xcom_push(key=FIGURES_KEY, value=figures_of(summary).to_json())
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning("the pages will not show this run: %s", error)


def masked(text: str) -> str:
    """The text with the secrets that Airflow knows masked."""
    return str(redact(text))


def log_outcome(log: Any, outcome: Outcome) -> None:
    """Logs a SELECT's first rows, the work of each phase, and last the headline of the result.

    Masks secrets in rows and escapes control characters.
    """
    if outcome.columns and outcome.rows:
        log.info("the first %d rows:", len(outcome.rows))
        for row in (outcome.columns, *outcome.rows):
            log.info("%s", "\t".join(plain(masked(value)) for value in row))
    summary = outcome.summary or {}
    for phase, seconds in summary.get("seconds", {}).items():
        if (work := summary["work"][phase]) is None:
            log.info("%s: %.1f s, its work is not counted", phase, seconds)
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
    """Raises the Airflow exception for a job that did not finish its work."""
    from airflow_hive_opt.spark.application.job import Status

    message = masked(outcome.message)
    if outcome.status is Status.FAILED:
        raise AirflowException(message)
    if outcome.status is Status.REFUSED:
        raise AirflowFailException(message)
    if outcome.status is Status.NOTHING_TO_DO:
        raise AirflowSkipException(message)
