"""What Spark's sessions in this JVM have asked of the metastore and of storage."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from airflow_hive_opt.runtime.report import Work


def work_of(jvm: Any) -> Work:
    """What has been asked so far."""
    return Work(*(counter.getCount() for counter in _counters(jvm)))


@lru_cache(maxsize=1)
def _counters(jvm: Any) -> tuple[Any, ...]:
    """The JVM's counters, in the order of :class:`~airflow_hive_opt.runtime.report.Work`.

    Finding a class by its name takes the gateway a question for each part of the name.
    """
    metrics = jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
    return (
        metrics.METRIC_HIVE_CLIENT_CALLS(),
        metrics.METRIC_PARTITIONS_FETCHED(),
        metrics.METRIC_FILES_DISCOVERED(),
    )
