"""Runs a task's job on a Spark Connect server, after what an earlier attempt has begun there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.job import Job, Outcome
from airflow_hive_opt.documents.remote_operation import ServerProcess
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath
from airflow_hive_opt.provider.connect_operations import ConnectOperations
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.connect import (
    from_handler,
    release,
    remote_session,
    server_of,
)
from airflow_hive_opt.spark.session.server_process import process_of
from airflow_hive_opt.statement.tables import writes_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.remote_operation import OperationId
    from airflow_hive_opt.documents.storage import StoragePath
    from airflow_hive_opt.provider.airflow_compat import Context
    from airflow_hive_opt.provider.embedded import Prepared

_PATIENCE = 8.0  # seconds, for two calls to the server of four each


class ConnectRun:
    """One attempt, in sessions with the settings of ``conf``.

    ``path`` is the attempt's, ``url`` the server's. ``defers`` says that it leaves a statement that
    takes long to the triggerer.
    """

    def __init__(
        self, context: Context, path: StoragePath, url: str, conf: Mapping[str, str], defers: bool
    ) -> None:
        self._url, self._conf = url, conf
        self._operations = ConnectOperations(context, path, url, conf, defers)
        self._session: SparkSession | None = None
        self._stopping: Thread | None = None

    def outcome(self, job: Job, prepared: Callable[[], Prepared]) -> Outcome:
        """Runs the job in a new session.

        ``prepared`` starts what needs no Spark. Raises what ``remote_session`` and
        :meth:`ConnectOperations.outcome_of_earlier` raise, such as ``LeftRunning``.
        """
        operations = self._operations
        if (done := operations.outcome_of_earlier(job)) is not None:
            return done
        known = prepared()(None)
        if isinstance(known, Outcome):
            return known
        with remote_session(self._url, self._conf, operations.may_run) as session:
            self._session = session
            try:
                operations.raise_if_stopped()
                process = ServerProcess()
                if writes_rows(known.statement):
                    process = process_of(session, server_of(self._url))
                begins = partial(operations.begins, process)
                return operations.settled(
                    lambda: run_job(session, known, ObjectStoragePath, begins)
                )
            finally:
                self._session = None

    def outcome_after_wait(
        self, waited_for: OperationId, event: Mapping[str, Any]
    ) -> Outcome | None:
        """See :meth:`ConnectOperations.outcome_after_wait`."""
        return self._operations.outcome_after_wait(waited_for, event)

    def raise_if_stopped(self) -> None:
        """Raises ``AirflowException`` after :meth:`interrupt`."""
        self._operations.raise_if_stopped()

    def stop(self) -> None:
        """Stops the work on the server, running and future, and waits for that."""
        self.interrupt()
        self.wait_until_stopped()

    def interrupt(self) -> None:
        """Stops the work on the server, running and future; for signal handlers."""
        self._operations.mark_stopped()
        self._stopping = from_handler(self._end)

    def wait_until_stopped(self) -> None:
        """Waits up to 8 s for the thread that :meth:`interrupt` has started."""
        if self._stopping is not None:
            self._stopping.join(_PATIENCE)

    def _end(self) -> None:
        self._operations.stop()
        self._operations.stop_own()
        if (session := self._session) is not None and not self._operations.may_run():
            release(session)
