"""Code that both sensors use to wait in the triggerer."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowSensorTimeout
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf


def deferrable_by_default() -> bool:
    """The value of ``[operators] default_deferrable``."""
    return bool(airflow_conf.getboolean("operators", "default_deferrable", fallback=False))


def deadline_in(seconds: float) -> str:
    """The UTC time in ``seconds`` seconds, in ISO 8601."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


def summary_in(event: dict[str, Any], timeout: float) -> dict[str, Any]:
    """The summary in a trigger's event.

    Raises ``AirflowSensorTimeout``, which says what is missing, and ``AirflowException`` if the
    trigger's check failed.
    """
    if "error" in event:
        raise AirflowException(event["error"])
    if not event["found"]:
        raise AirflowSensorTimeout(f"after {timeout:,.0f} s: {event['message']}")
    summary: dict[str, Any] = event["summary"]
    return summary
