"""The outcome of a run that a gate has stopped."""

from __future__ import annotations

from airflow_hive_opt.documents.gates import JoinStopped, NothingToDo
from airflow_hive_opt.documents.job import Outcome, Status
from airflow_hive_opt.documents.report import Report, headline


def stopped(stop: JoinStopped, report: Report, digest: str | None = None) -> Outcome:
    """The outcome with all that the local task has found.

    ``digest`` is that of the descriptor if another task has written one.
    """
    status = Status.NOTHING_TO_DO if isinstance(stop, NothingToDo) else Status.REFUSED
    found = {"stopped": stop.short, "headline": headline(stop.descriptor)}
    if digest:
        found = {**found, "digest": digest}
    return Outcome(status, str(stop), {**report.summary(), **found})
