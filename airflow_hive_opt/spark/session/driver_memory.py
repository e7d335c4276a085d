"""How much memory the driver has needed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def peak_heap(session: SparkSession) -> int | None:
    """Bytes: the sum of the peaks of the heap's pools since the driver's JVM started.

    ``None`` over Spark Connect, whose driver is elsewhere. The pools need not have been at their
    peaks together, so the heap was never fuller.
    """
    if is_remote(session):
        return None
    return sum(int(pool.getPeakUsage().getUsed()) for pool in heap_pools(session._jvm))


@lru_cache(maxsize=1)
def heap_pools(jvm: Any) -> tuple[Any, ...]:
    """The JVM's beans for the parts of its heap."""
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return tuple(pool for pool in pools if pool.getType().toString() == "Heap memory")
