"""Measures the driver's peak memory."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session import is_shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def peak_heap(session: SparkSession) -> int | None:
    """Bytes: the sum of the peaks of the heap's memory pools since the driver's JVM started.

    ``None`` over Spark Connect, whose driver is elsewhere, and for a Spark that tasks share. The
    pools may have had their peaks at different times, so this is an upper bound of the heap's peak.
    """
    if is_remote(session) or is_shared(session.sparkContext):
        return None
    return sum(int(pool.getPeakUsage().getUsed()) for pool in heap_pools(session._jvm))


@lru_cache(maxsize=1)
def heap_pools(jvm: Any) -> tuple[Any, ...]:
    """The JVM's memory pool beans of the heap."""
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return tuple(pool for pool in pools if pool.getType().toString() == "Heap memory")
