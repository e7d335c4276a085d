"""How much memory the driver has needed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def peak_heap(session: SparkSession) -> int:
    """Bytes: the sum of the peaks of the heap's pools since the driver's JVM started.

    The pools need not have been at their peaks together, so the heap was never fuller.
    """
    return sum(pool.getPeakUsage().getUsed() for pool in heap_pools(session._jvm))


@lru_cache(maxsize=1)
def heap_pools(jvm: Any) -> tuple[Any, ...]:
    """The JVM's beans for the parts of its heap."""
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return tuple(pool for pool in pools if pool.getType().toString() == "Heap memory")
