"""The wait for an application in the triggerer: how long it is, and what its end means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.applications.following import (
    SECONDS_TO_STOP,
    Ended,
    How,
    run,
    stop,
)
from airflow_hive_opt.provider.triggerer import at_end_of_process, state_now

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.applications.cluster import Cluster

LEAST_INTERVAL = 5.0
"""Seconds between two looks at an application: many tasks may wait in one triggerer."""


def deadline(context: Context, execution_timeout: timedelta | None) -> str | None:
    """When the task's ``execution_timeout`` is over, counted from its start; in ISO 8601."""
    if execution_timeout is None:
        return None
    instance: Any = context["ti"]
    started = getattr(instance, "start_date", None) or datetime.now(timezone.utc)
    return str((started + execution_timeout).isoformat())


def stop_unless_followed(cluster: Cluster, id_: str, context: Context, log: Any) -> None:
    """Stops the application at the end of this process if Airflow has refused to defer the task.

    It does so if a user has stopped the task meanwhile, and tells nobody: there is no trigger whose
    ``on_kill`` it calls. A task that still runs could not reach Airflow, which tries again.
    """
    instance: Any = context["ti"]

    def look() -> None:
        try:
            state = state_now(instance)
        except Exception as error:  # noqa: BLE001 - whatever Airflow raises
            log.warning("%s goes on: the task's state is unknown: %s", id_, error)
            return
        if state in ("deferred", "running"):
            return
        log.info("the task is %s now, so %s is stopped", state or "cleared", id_)
        if run(stop(cluster, id_, SECONDS_TO_STOP)) is None:
            log.warning("%s may still run: the cluster does not stop it", id_)

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
