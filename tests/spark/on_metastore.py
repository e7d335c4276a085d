"""A session of this process's Spark on another metastore than its own.

Spark has one metastore a shared state, and one context may have several shared states. Operators
that run in this process then take the session that the block has made, and so its metastore.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tests.services.metastore import MetastoreService


@contextmanager
def spark_on(spark: SparkSession, service: MetastoreService) -> Iterator[SparkSession]:
    """A session on the metastore, which is this process's session until the block ends."""
    java = spark._jsparkSession
    of_class = spark._jvm
    for part in java.getClass().getName().split("."):
        of_class = getattr(of_class, part)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("hive.metastore.uris", service.uri)
    try:
        other = of_class(spark.sparkContext._jsc.sc())
        other.sharedState()  # which takes the settings as they are now
    finally:
        hadoop.unset("hive.metastore.uris")
    before = SparkSession._instantiatedSession
    session = SparkSession(spark.sparkContext, other)
    SparkSession._instantiatedSession = session
    _make_default(of_class, other)
    try:
        yield session
    finally:
        SparkSession._instantiatedSession = before
        _make_default(of_class, java)


def _make_default(of_class, java) -> None:
    of_class.setDefaultSession(java)
    of_class.setActiveSession(java)
