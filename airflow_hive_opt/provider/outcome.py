"""Turns a run's outcome into the task's XComs, log lines and exception."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.figures import FIGURES_KEY, SUMMARY_KEY, figures_of
from airflow_hive_opt.documents.log_text import plain
from airflow_hive_opt.documents.report import decision_lines
from airflow_hive_opt.links.pages import DESCRIPTOR_KEY, reason_page
from airflow_hive_opt.provider.airflow_compat import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    redact,
)
from airflow_hive_opt.provider.without_stack import without_stack

if TYPE_CHECKING:
    from airflow_hive_opt.documents.job import Outcome


log = logging.getLogger(__name__)


def publish(
    log: Any, instance: Any, outcome: Outcome, decided: bool, returned: bool = True
) -> None:
    """Publishes what the local task found, whether the statement then ran or not.

    Pushes the XComs that the pages and the links of a task instance read, and logs the decisions
    of a task that has ``decided``. ``instance`` is ``None`` if no page shows the statement.
    ``returned`` says that a task that succeeds returns the summary as its own XCom.
    """
    if outcome.summary is None:
        return
    if instance is not None:
        _push_for_pages(instance, outcome.summary, outcome.status == "done" and returned)
    if decided and (decisions := outcome.summary.get("decisions")):
        _log_decisions(log, decisions)


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
            log.info("%s: %.1f s; metastore calls and files are not counted", phase, seconds)
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


def raise_unless_done(log: Any, outcome: Outcome) -> None:
    """Raises the Airflow exception for a job that did not finish its work.

    If a gate has stopped it, logs before that what was kept.
    """
    from airflow_hive_opt.documents.job import Status

    if outcome.status is Status.DONE:
        return
    if kept := (outcome.summary or {}).get("headline"):
        log.info("%s", masked(kept))
    kinds = {Status.FAILED: AirflowException, Status.REFUSED: AirflowFailException}
    kind = kinds.get(outcome.status, AirflowSkipException)
    raise without_stack(kind(masked(outcome.message)))


def _push_for_pages(instance: Any, summary: Mapping[str, Any], is_returned: bool) -> None:
    """A failure of the figures is only logged: the statement may have run."""
    instance.xcom_push(key=DESCRIPTOR_KEY, value=summary["uri"])
    if not is_returned:
        instance.xcom_push(key=SUMMARY_KEY, value=dict(summary))
    try:
        instance.xcom_push(key=FIGURES_KEY, value=figures_of(summary).to_json())
    except Exception as error:  # noqa: BLE001 - whatever it is
        log.warning("the pages will not show this run: %s", error)


def _log_decisions(log: Any, decisions: Sequence[Mapping[str, Any]]) -> None:
    """Logs a summary's decisions as a table, then advice on each reason not to prune."""
    # late: the DAG file imports this module, and only a run needs the advice
    from airflow_hive_opt.pruning.advice import advice_on

    for line in decision_lines(decisions):
        log.info("%s", line)
    for code in dict.fromkeys(str(found["reason"]) for found in decisions):
        if advice := advice_on(code):
            log.info("what to do about %s: %s More: %s", code, advice, reason_page(code))
