"""The jars of a table format for the Spark of this environment."""

from __future__ import annotations

import pytest
from pyspark.version import __version__

from tests.services.jars import is_locked, jars

SPARK = ".".join(__version__.split(".")[:2])
"""The line of Spark, as in ``3.5``."""


def jars_of(table_format: str) -> str:
    """The jars as ``spark.jars`` takes them; skips the test if none are locked for this Spark."""
    name = f"{table_format}-{SPARK}"
    if not is_locked(name):
        pytest.skip(f"no jars of {table_format} for Spark {SPARK}: make test-lakes")
    return ",".join(map(str, jars(name)))
