"""The wait for an application in the triggerer: how long it is, and what its end means.

A statement on a Spark Connect server shares what does not depend on a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.applications.following import Ended, How
from airflow_hive_opt.provider.triggerer import at_end_of_process, state_now

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context

LEAST_INTERVAL = 5.0
"""Seconds between two looks at an application: many tasks may wait in one triggerer."""

# A triggerer looks for new triggers every second, and Airflow lets a process go on for 20.
_SECONDS_UNTIL_FOLLOWED, _PAUSE = 5.0, 1.0
# By a user. A task that goes on after its wait is scheduled, queued or running: then it has ended.
_STOPPED = ("failed", "success", "skipped", "restarting", "removed", None)


def deadline(context: Context, execution_timeout: timedelta | None) -> str | None:
    """When the task's ``execution_timeout`` is over, counted from its start; in ISO 8601."""
    if execution_timeout is None:
        return None
    instance: Any = context["ti"]
    started = getattr(instance, "start_date", None) or datetime.now(timezone.utc)
    return str((started + execution_timeout).isoformat())


def stop_unless_followed(what: str, stop: Callable[[], None], context: Context, log: Any) -> None:
    """Lets ``stop`` stop the task's work at the end of this process if a user has stopped the task.

    Then Airflow has refused to defer the task, or no triggerer has got its trigger: nobody calls
    the ``on_kill`` of a trigger that no triggerer has. A task that still runs could not reach
    Airflow, which tries again.
    """
    instance: Any = context["ti"]

    def look() -> None:
        until = time.monotonic() + _SECONDS_UNTIL_FOLLOWED
        try:
            while (state := state_now(instance)) == "deferred" and time.monotonic() < until:
                time.sleep(_PAUSE)
        except Exception as error:  # noqa: BLE001 - whatever Airflow raises
            log.warning("%s goes on: the task's state is unknown: %s", what, error)
            return
        if state not in _STOPPED:
            return
        log.info("the task is %s now, so %s is stopped", state or "cleared", what)
        stop()

    at_end_of_process(look)


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
