"""Counts the metastore and storage calls of Spark's sessions in this JVM."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from airflow_hive_opt.metastores.work import Work


def work_of(jvm: Any) -> Work:
    """The counts so far."""
    return Work(*(counter.getCount() for counter in _counters(jvm)))


@lru_cache(maxsize=1)
def _counters(jvm: Any) -> tuple[Any, ...]:
    """The JVM's counters, in the order of :class:`~airflow_hive_opt.metastores.work.Work`.

    Cached, because Py4J makes one call for each part of a class's name.
    """
    metrics = jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    return (
        metrics.METRIC_HIVE_CLIENT_CALLS(),
        metrics.METRIC_PARTITIONS_FETCHED(),
        metrics.METRIC_FILES_DISCOVERED(),
    )
