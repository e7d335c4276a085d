"""The process of a shared Spark, with its folder as argument.

It reads Spark's settings as JSON from its standard input, starts Spark, and publishes the address
of Spark's gateway, which is PySpark's own. It ends when it was idle for long, when its heap is full
although no task uses it, when Spark's JVM has ended, and on SIGTERM.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.spark.session.java import SparkStartError, WrongSettingError
from airflow_hive_opt.spark.session.session import SHARED, spark_session
from airflow_hive_opt.spark.session.shared_folder import Address, SharedFolder
from airflow_hive_opt.spark.session.shared_settings import Bounds

log = logging.getLogger(__name__)

_SECONDS = 1.0  # between two looks at the tasks
_REMEMBERED = 600.0  # seconds in which jobs of a task that has ended may still begin
_FULL = 0.5  # of the heap


def main() -> int:
    """Serves until the shared Spark is no longer needed; returns 1 if it could not start."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    shared = SharedFolder(Path(sys.argv[1]))
    given = json.load(sys.stdin)
    alive = shared.hold()
    if alive is None:
        return 0  # another process was faster
    stopping = threading.Event()  # a call of the JVM must not be interrupted
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    conf = {"spark.scheduler.mode": "FAIR", **given["conf"], SHARED: "true"}
    try:
        with spark_session("airflow-hive-opt, shared", conf) as session:
            try:
                _serve(session, shared, Bounds(**given["bounds"]), stopping)
            finally:
                shared.publish(None)  # nobody may come while Spark ends
    except (SparkStartError, DescriptorError) as error:
        refused = isinstance(error, WrongSettingError)
        log.error("%s", error)
        with suppress(OSError):  # a full disk
            shared.failure.write_text(json.dumps({"message": str(error), "refused": refused}))
        return 1
    return 0


def _serve(session: Any, shared: SharedFolder, bounds: Bounds, stopping: threading.Event) -> None:
    gateway = session.sparkContext._gateway
    process, context = gateway.proc, session.sparkContext._jsc.sc()
    parameters = gateway.gateway_parameters
    address = Address(parameters.port, parameters.auth_token)
    shared.publish(address)
    log.info("Spark is ready")
    used, before = time.monotonic(), 0.0
    abandoned: dict[str, float] = {}
    while process.poll() is None and not context.isStopped():
        if stopping.wait(_SECONDS):
            log.info("this Spark is told to stop")
            return
        if shared.address() != address:  # a task that was about to start another one removed it
            with suppress(DescriptorError):  # a full disk; the next round tries again
                shared.publish(address)
        for tag in shared.abandoned():
            log.info("a task has ended without notice: its jobs are cancelled")
            abandoned[tag] = time.monotonic()
        for tag, since in list(abandoned.items()):
            context.cancelJobsWithTag(tag)  # again, because a statement may still be planned
            if time.monotonic() - since > _REMEMBERED:
                del abandoned[tag]
        last = shared.last_used()
        if shared.tasks() or last != before:
            used, before = time.monotonic(), last
            continue
        idle = time.monotonic() - used
        if idle >= bounds.idle or (idle < 2 * _SECONDS and _is_full(session)):
            with shared.locked_at_once() as locked:
                if locked and shared.tasks() == 0:
                    shared.publish(None)  # before another task gets the lock
                    log.info("no task has used this Spark for %.0f s", idle)
                    return
    log.info("Spark's JVM has ended")


def _is_full(session: Any) -> bool:
    """Whether much of the heap is in use although no task is there; then a new Spark is better."""
    session._jvm.System.gc()
    heap = session._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()
    usage = heap.getHeapMemoryUsage()
    return bool(usage.getUsed() > _FULL * usage.getMax())


if __name__ == "__main__":
    sys.exit(main())
