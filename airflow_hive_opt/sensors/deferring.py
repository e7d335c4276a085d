"""What both sensors do alike: wait in the triggerer, and hear of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowSensorTimeout
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf


def deferrable_by_default() -> bool:
    """``[operators] default_deferrable``."""
    return bool(airflow_conf.getboolean("operators", "default_deferrable", fallback=False))


def deadline_in(seconds: float) -> str:
    """The time in so many seconds, ISO 8601, UTC."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


def concluded(event: dict[str, Any], timeout: float) -> dict[str, Any]:
    """The summary of what a trigger found.

    Raises ``AirflowSensorTimeout`` with what is missing, and ``AirflowException`` where the trigger
    could not look.
    """
    if "error" in event:
        raise AirflowException(event["error"])
    if not event["found"]:
        raise AirflowSensorTimeout(f"after {timeout:,.0f} s: {event['message']}")
    summary: dict[str, Any] = event["summary"]
    return summary
