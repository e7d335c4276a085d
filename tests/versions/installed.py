"""Marks for tests of what the oldest supported versions do not have."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from packaging.version import Version

AIRFLOW = Version(version("apache-airflow"))
SPARK = Version(version("pyspark"))


def needs_airflow(least: str) -> pytest.MarkDecorator:
    """Skips the test on an older Airflow."""
    return pytest.mark.skipif(Version(least) > AIRFLOW, reason=f"needs Airflow {least}")


def needs_spark(least: str) -> pytest.MarkDecorator:
    """Skips the test on an older PySpark."""
    return pytest.mark.skipif(Version(least) > SPARK, reason=f"needs Spark {least}")
