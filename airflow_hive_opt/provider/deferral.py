"""The wait for a submitted application in the triggerer: when it begins, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import RESUMES, AirflowException, AirflowFailException
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.following import Ended

LEAST_INTERVAL = 5.0
"""Seconds between two looks at an application: many tasks may wait in one triggerer."""

NOT_DEFERRED = "deferrable=True has no effect here, and the task keeps its slot: %s"
_NOT_BEFORE = "before Airflow 3.3 and its Spark provider 6.1, a task waits in its worker"


def default_deferrable() -> bool:
    """``[operators] default_deferrable``."""
    return bool(airflow_conf.getboolean("operators", "default_deferrable", fallback=False))


def is_deferrable(asked: object) -> bool:
    """The argument ``deferrable``, else Airflow's default; raises ``ValueError``."""
    if asked is None:
        return default_deferrable()
    if not isinstance(asked, bool):
        raise ValueError(f"deferrable must be True or False, not {asked!r}")
    return asked


def why_not_deferred(kind: str) -> str | None:
    """Why a task that runs in this kind of place does not defer; ``None`` if it may.

    ``kind`` is that of a :class:`~airflow_hive_opt.provider.connections.Deployment`.
    """
    if kind == "embedded":
        return "its Spark runs in the worker"
    if kind == "submitted" and not RESUMES:
        return _NOT_BEFORE
    return None


def deadline(context: Context, execution_timeout: Any) -> str | None:
    """When the task's ``execution_timeout`` is over, counted from its start; in ISO 8601."""
    if execution_timeout is None:
        return None
    started = getattr(context["ti"], "start_date", None) or datetime.now(timezone.utc)
    return str((started + execution_timeout).isoformat())


def ended_in(event: Mapping[str, Any]) -> Ended:
    """What the trigger's event says."""
    from airflow_hive_opt.provider.following import Ended, How  # late: DAG files don't need it

    return Ended(How(event["how"]), str(event["message"]))


def failure_of(ended: Ended) -> Exception | None:
    """What a task without an outcome fails with; ``None`` if its application succeeded.

    It may be retried only if its application does not run any more.
    """
    from airflow_hive_opt.provider.following import How

    if ended.how is How.SUCCEEDED:
        return None
    if ended.how is How.LOST:
        return AirflowFailException(
            f"{ended.message}. It may still run: make sure that it has ended before you clear this "
            "task"
        )
    return AirflowException(ended.message)
