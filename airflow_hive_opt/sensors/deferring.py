"""Code that both sensors use to wait in the triggerer."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from typing import Any

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowSensorTimeout
from airflow_hive_opt.provider.airflow_compat import conf as airflow_conf

_OF_POKING = ("exponential_backoff", "max_wait", "mode", "silent_fail")
"""Arguments of Airflow's sensors that the wait in the triggerer does not read."""


def is_deferrable(asked: bool | None, given: Collection[str]) -> bool:
    """The argument ``deferrable``, else ``[operators] default_deferrable``.

    ``given`` are the names of the sensor's other arguments. Raises ``TypeError`` for those that
    have no effect if ``deferrable`` is asked for. The configuration is for all sensors, so it
    rejects nothing.
    """
    if asked is None:
        return bool(airflow_conf.getboolean("operators", "default_deferrable", fallback=False))
    if asked and (named := [name for name in _OF_POKING if name in given]):
        raise TypeError(
            f"{', '.join(named)} can't be set with deferrable=True: the triggerer checks every "
            "poke_interval seconds until the timeout"
        )
    return asked


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
