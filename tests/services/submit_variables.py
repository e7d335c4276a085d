"""The variables of this process that a task sets before it submits an application."""

from __future__ import annotations

import os

import pytest

_NAMES = ("PATH", "PYSPARK_DRIVER_PYTHON", "AIRFLOW_HIVE_OPT_TASK_PID", "JAVA_HOME")


def put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has them as they are now again when the test ends."""
    for name in _NAMES:
        monkeypatch.setenv(name, os.environ.get(name, ""))
        if not os.environ[name]:
            monkeypatch.delenv(name)
