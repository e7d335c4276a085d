"""The embedded Spark of a task: its own, or one that the tasks of this machine share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_hive_opt.hooks.hive_metastore import spark_conf_of
from airflow_hive_opt.provider.airflow_compat import AirflowFailException, ObjectStoragePath, conf
from airflow_hive_opt.provider.start_errors import start_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.job import Job, Outcome
    from airflow_hive_opt.spark.session.shared_settings import Bounds

log = logging.getLogger(__name__)

TASK, SHARED = "task", "shared"
# A Spark that is there after so many seconds ran before. It collects keys as quickly as the worker.
_WARM = 1.0
Prepared: TypeAlias = "Callable[[float | None], Job | Outcome]"
"""Gives the job to run, or the outcome if it needs no Spark.

Waits so many seconds for what is done beside Spark's start; ``None`` is until it ends.
"""


def embedded_settings(
    master: str, metastore_conn_id: str | None, given: Mapping[str, Any]
) -> dict[str, str]:
    """Spark's settings on ``[hive_opt] warehouse``: the connection's, then the task's own."""
    from airflow_hive_opt.spark.session.embedded_warehouse import default_warehouse, embedded_conf

    warehouse = conf.get("hive_opt", "warehouse", fallback="")
    base = embedded_conf(Path(warehouse) if warehouse else default_warehouse(), master)
    own = {key: str(value) for key, value in given.items()}
    return {**base, **spark_conf_of(metastore_conn_id), **own}


def load_spark() -> None:
    """Imports what an embedded run needs.

    Threads of Python take turns. If the worker's local task begins when this is done, it does not
    delay the start of the JVM.
    """
    import airflow_hive_opt.spark.application.run  # noqa: F401


Started: TypeAlias = "Callable[[SparkSession | None, Callable[[], None]], None]"
"""Gets the session, and a function that stops the task's work alone, also for signal handlers.

It first gets no session if the task may have to wait for a shared Spark.
"""


@dataclass(frozen=True)
class OpenSession:
    """A session of Spark, which was ready after some ``seconds``."""

    session: SparkSession
    seconds: float
    why_failed: Callable[[], str | None] = lambda: None

    def explained(self, outcome: Outcome) -> Outcome:
        """The outcome, which says so if it failed because the shared Spark has ended."""
        from airflow_hive_opt.documents.job import Status

        why = self.why_failed() if outcome.status is Status.FAILED else None
        return replace(outcome, message=why) if why else outcome


@contextmanager
def embedded_session(
    name: str, settings: Mapping[str, str], started: Started
) -> Iterator[OpenSession]:
    """A session where ``[hive_opt] session`` says; in this process's Spark if there is one.

    Raises ``AirflowException``, and ``AirflowFailException`` for a wrong configuration.
    """
    from airflow_hive_opt.spark.session.java import SparkStartError
    from airflow_hive_opt.spark.session.session import has_spark, kill_spark, spark_session
    from airflow_hive_opt.spark.session.shared import shared_session

    began = time.monotonic()

    stopped = threading.Event()

    def stop() -> None:
        """Uses another thread: a signal handler must not wait for the lock of the event."""
        threading.Thread(target=stopped.set, daemon=True).start()

    def ready(session: SparkSession, interrupt: Callable[[], None]) -> float:
        seconds = time.monotonic() - began
        log.info("Spark session ready after %.1f s", seconds)
        started(session, interrupt)
        if stopped.is_set():
            raise SparkStartError("the task was stopped before its statement began")
        return seconds

    with start_errors():
        if not _is_shared() or has_spark():
            with spark_session(name, settings) as session:
                yield OpenSession(session, ready(session, kill_spark))
            return
        started(None, stop)
        with shared_session(settings, _bounds(), stopped) as shared:
            seconds = ready(shared.session, shared.interrupt)
            yield OpenSession(shared.session, seconds, shared.why_failed)


def run_embedded(
    name: str,
    settings: Mapping[str, str],
    prepared: Prepared,
    started: Started,
    tell: Callable[[Outcome], None],
) -> Outcome:
    """Runs a job in an :func:`embedded_session`.

    ``prepared`` gives the job once there is a session. ``tell`` gets the outcome before the session
    ends, which may take long. Raises what :func:`embedded_session` raises.
    """
    from airflow_hive_opt.documents.job import Outcome
    from airflow_hive_opt.spark.application.run import run_job

    with embedded_session(name, settings, started) as embedded:
        job = prepared(0 if embedded.seconds < _WARM else None)
        if isinstance(job, Outcome):
            return job
        outcome = embedded.explained(run_job(embedded.session, job, ObjectStoragePath))
        tell(outcome)
        return outcome


def _is_shared() -> bool:
    place = conf.get("hive_opt", "session", fallback=TASK)
    if place not in (TASK, SHARED):
        raise AirflowFailException(f"[hive_opt] session must be task or shared, not {place!r}")
    return bool(place == SHARED)


def _bounds() -> Bounds:
    from airflow_hive_opt.spark.session.shared_settings import Bounds

    return Bounds(_whole_number("session_idle", 300), _whole_number("session_tasks", 16))


def _whole_number(name: str, default: int) -> int:
    given = conf.get("hive_opt", name, fallback=str(default))
    if not given.isdecimal() or int(given) < 1:
        raise AirflowFailException(
            f"[hive_opt] {name} must be a whole number from 1 on, not {given!r}"
        )
    return int(given)
