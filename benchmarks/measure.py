"""Measures one run of one contender: seconds, metastore, listings, bytes, memory, noise."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.driver_memory import heap_pools, peak_heap
from benchmarks.slow_listing import Listings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Cost:
    """The cost of one run.

    ``cpu_seconds`` are those of the JVM and of Python: other processes disturb them less than
    ``seconds``. ``peak_heap`` is the sum of the peaks of the heap's pools, in bytes.
    """

    seconds: float
    cpu_seconds: float
    metastore_calls: int
    partitions_fetched: int
    files_listed: int
    directories_listed: int
    bytes_read: int
    peak_heap: int

    def __add__(self, other: Cost) -> Cost:
        """The cost of two runs, one after the other."""
        mine, theirs = asdict(self), asdict(other)
        summed = {name: mine[name] + theirs[name] for name in mine}
        return Cost(**{**summed, "peak_heap": max(self.peak_heap, other.peak_heap)})


class Meter:
    """Reads a session's counters before and after a run."""

    def __init__(self, session: SparkSession) -> None:
        from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog

        self._session = session
        self._listings = Listings(session)
        self._catalog = SparkCatalog(session)
        self._jvm: Any = session._jvm
        self._cpu = cpu_clock(session)

    def run(self, action: Callable[[], Any]) -> tuple[Cost, Any]:
        """The cost of ``action`` and its result."""
        self._jvm.System.gc()
        for pool in heap_pools(self._jvm):
            pool.resetPeakUsage()
        before, bytes_before = self._catalog.work(), self._bytes()
        directories = self._listings.count()
        cpu, began = self._cpu(), time.monotonic()
        result = action()
        seconds, cpu = time.monotonic() - began, self._cpu() - cpu
        work = self._catalog.work() - before
        return Cost(
            seconds,
            cpu,
            work.metastore_calls,
            work.partitions_fetched,
            work.files_listed,
            self._listings.count() - directories,
            self._bytes() - bytes_before,
            peak_heap(self._session),
        ), result

    def _bytes(self) -> int:
        context: Any = self._session.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        executors = context.statusStore().executorList(False)
        convert = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava
        return sum(executor.totalInputBytes() for executor in convert(executors))


def cpu_clock(session: SparkSession) -> Callable[[], float]:
    """Tells the seconds of CPU time of the session's JVM and of this process since they started."""
    jvm: Any = session._jvm
    runtime = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    times = Path("/proc", str(runtime.getName()).partition("@")[0], "stat")

    def seconds() -> float:
        user, system = times.read_text().rpartition(")")[2].split()[11:13]
        ticks = int(user) + int(system)
        return ticks / os.sysconf("SC_CLK_TCK") + time.process_time()

    return seconds


@dataclass(frozen=True)
class Machine:
    """The machine, and the versions of the measured software."""

    cores: int = field(default_factory=lambda: os.cpu_count() or 0)
    system: str = field(default_factory=platform.platform)
    python: str = field(default_factory=platform.python_version)
    pyspark: str = field(default_factory=lambda: version("pyspark"))
    package: str = field(default_factory=lambda: version("airflow-hive-opt"))


def noise() -> float:
    """Milliseconds of a fixed piece of work; if they vary, all results vary."""
    data = b"x" * (8 << 20)
    began = time.monotonic()
    hashlib.sha256(data).digest()
    return (time.monotonic() - began) * 1000


@contextmanager
def quiet_session(name: str, conf: dict[str, str]) -> Iterator[SparkSession]:
    """A session that logs errors only."""
    from airflow_hive_opt.spark.session.session import spark_session

    with spark_session(name, conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session
