"""Logs progress while Spark works: stages with their tasks and rows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from airflow_hive_opt.spark.session.connect import is_remote, stage_lines
from airflow_hive_opt.spark.session.spark_compat import items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@contextmanager
def progress(session: SparkSession, what: str, seconds: float = 10.0) -> Iterator[None]:
    """Logs Spark's active stages every ``seconds`` seconds until the block ends."""
    if is_remote(session):
        with stage_lines(session) as told, _telling(what, lambda: list(told.values()), seconds):
            yield
    else:
        with _telling(what, lambda: stages(session), seconds):
            yield


@contextmanager
def _telling(what: str, lines: Callable[[], list[str]], seconds: float) -> Iterator[None]:
    done = threading.Event()

    def tell() -> None:
        while not done.wait(seconds):
            try:
                for line in lines():
                    log.info("%s: %s", what, line)
            except (Py4JError, OSError):  # the JVM has ended; the waiting call will fail with it
                return

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def stages(session: SparkSession) -> list[str]:
    """One line for each active stage: its number, finished tasks, rows read and written."""
    store: Any = session.sparkContext._jsc.sc().statusStore()
    active = items(store.activeStages())
    return [
        f"stage {stage.stageId()}, {stage.numCompleteTasks():,} of {stage.numTasks():,} tasks, "
        f"{stage.inputRecords():,} rows read, {stage.outputRecords():,} written"
        for stage in active
    ]
