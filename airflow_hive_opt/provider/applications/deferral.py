"""The wait for an application in the triggerer: how long it is, and what its end means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.applications.following import Ended, How

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

LEAST_INTERVAL = 5.0
"""Seconds between two looks at an application: many tasks may wait in one triggerer."""


def deadline(context: Context, execution_timeout: timedelta | None) -> str | None:
    """When the task's ``execution_timeout`` is over, counted from its start; in ISO 8601."""
    if execution_timeout is None:
        return None
    instance: Any = context["ti"]
    started = getattr(instance, "start_date", None) or datetime.now(timezone.utc)
    return str((started + execution_timeout).isoformat())


def ended_in(event: Mapping[str, Any]) -> Ended:
    """What the trigger's event says."""
    return Ended(How(event["how"]), str(event["message"]))


def failure_of(ended: Ended) -> Exception | None:
    """What a task without an outcome fails with; ``None`` if its application succeeded.

    It may be retried only if its application does not run any more.
    """
    if ended.how is How.SUCCEEDED:
        return None
    if ended.how is How.LOST:
        return AirflowFailException(
            f"{ended.message}. It may still run: make sure that it has ended before you clear this "
            "task"
        )
    return AirflowException(ended.message)
