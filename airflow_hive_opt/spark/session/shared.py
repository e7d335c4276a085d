"""A session in a Spark that the tasks of one machine share.

The first task starts Spark in a process of its own. Each task opens a session there through
PySpark's gateway, so it can do all that it could do in a Spark of its own. A Spark Connect server
would give it no access to the JVM, which the local task uses.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.session.file_locks import wait_or_stop
from airflow_hive_opt.spark.session.interrupted_calls import leave_interrupted_calls
from airflow_hive_opt.spark.session.java import SparkStartError, WrongSettingError, ensure_java
from airflow_hive_opt.spark.session.prompt_answers import get_answers_at_once
from airflow_hive_opt.spark.session.session import check_versions, set_setting
from airflow_hive_opt.spark.session.shared_folder import Address, SharedFolder, starting
from airflow_hive_opt.spark.session.shared_settings import Bounds, of_a_session, of_the_whole
from airflow_hive_opt.spark.session.spark_log import is_configured, quiet_py4j

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_PATIENCE_TO_START = 300  # seconds
_BETWEEN = 0.1
_BETWEEN_CANCELS = 0.5


@dataclass(frozen=True)
class SharedSession:
    """A task's session in a shared Spark."""

    session: SparkSession
    tag: str
    folder: SharedFolder
    left: threading.Event

    def why_failed(self) -> str | None:
        """The error text after the shared Spark has ended; ``None`` while it is alive."""
        with suppress(Exception):
            context: Any = self.session.sparkContext._jsc
            if self.folder.is_alive() and not context.sc().isStopped():
                return None
        return (
            "the Spark that the tasks of this machine share has ended while this task used it. "
            f"Its log is {self.folder.log}. A retry starts a new one"
        )

    def interrupt(self) -> None:
        """Cancels this task's jobs alone, running and future; also for signal handlers.

        Uses another thread, because the interrupted one may be inside a call of the JVM.
        """
        threading.Thread(target=self._cancel, daemon=True).start()

    def _cancel(self) -> None:
        """Cancels again and again: a statement that is still planned has no job yet."""
        while not self.left.is_set():
            try:
                context: Any = self.session.sparkContext._jsc
                context.sc().cancelJobsWithTag(self.tag)
            except Exception as error:  # noqa: BLE001 - the shared Spark may have ended
                log.warning("the task's jobs could not be cancelled: %s", in_words(error))
                return
            self.left.wait(_BETWEEN_CANCELS)


@contextmanager
def shared_session(
    conf: Mapping[str, str], bounds: Bounds, stopped: threading.Event | None = None
) -> Iterator[SharedSession]:
    """A session in the shared Spark for these settings, which starts if it does not run.

    Waits while as many tasks use it as ``bounds`` allows. Raises :class:`SparkStartError`, also if
    ``stopped`` is set while this task waits.
    """
    from airflow_hive_opt.spark.session.spark_compat import without_pandas

    check_versions()
    ensure_java()
    if not is_configured(conf):
        quiet_py4j()
    tag = f"airflow-hive-opt-{uuid4().hex}"
    try:
        folder = SharedFolder.of(conf, bounds)
        place, address = _place(folder, conf, bounds, tag, stopped or threading.Event())
    except OSError as error:
        raise SparkStartError(f"the folder of the shared Spark: {error}") from None
    try:
        with without_pandas():
            session = _connected(address, tag, Path(place.name).name)
            shared = SharedSession(session, tag, folder, threading.Event())
            try:
                for name, value in of_a_session(conf).items():
                    set_setting(session, name, value)
                yield shared
            except BaseException:
                # a timeout may have interrupted a call, which goes on in the JVM: the server
                # cancels its jobs, and this process frees nothing there
                shared.left.set()
                place.close()
                _forget(session)
                raise
            shared.left.set()
            _give_back(session)
            _forget(session)
            folder.release(place)
    finally:
        place.close()


def _place(
    folder: SharedFolder,
    conf: Mapping[str, str],
    bounds: Bounds,
    tag: str,
    stopped: threading.Event,
) -> Any:
    """A place among the tasks, and the address of the shared Spark."""
    told = False
    while True:
        with folder.locked(stopped):
            address = _running(folder, stopped)
            if address is None:
                with starting(stopped):
                    running = _running(folder, stopped)  # of a task that was killed meanwhile
                    address = running or _start(folder, conf, bounds, stopped)
            place = folder.claim(bounds.tasks, tag)
        if place is not None:
            return place, address
        if not told:
            log.info("the shared Spark is full ([hive_opt] session_tasks): this task waits")
            told = True
        wait_or_stop(1, stopped)


def _running(folder: SharedFolder, stopped: threading.Event) -> Address | None:
    """The address of the shared Spark, if it runs; waits while one starts or ends.

    A Spark may be starting although nobody holds the folder's lock, if the task that started it was
    killed. A Spark that neither starts nor ends in time is ended. Raises ``SparkStartError`` if
    that is not possible.
    """
    until = time.monotonic() + _PATIENCE_TO_START
    while folder.is_alive():
        if (address := folder.address()) is not None:
            return address
        if time.monotonic() > until and not folder.kill():
            raise SparkStartError(
                f"the shared Spark runs, but can't be used or ended: see {folder.log}"
            )
        wait_or_stop(_BETWEEN, stopped)
    return None


def _start(
    folder: SharedFolder, conf: Mapping[str, str], bounds: Bounds, stopped: threading.Event
) -> Address:
    """Starts the process and waits until Spark is ready.

    The caller holds the folder's lock, and the lock under which all Sparks start.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for other in SharedFolder.all():
        if other.folder == folder.folder:
            continue
        if other.pid() is not None:
            _running(other, stopped)  # perhaps it is about to end
        other.stop()  # it needs memory, and perhaps this one's embedded metastore
    folder.failure.unlink(missing_ok=True)
    folder.publish(None)  # a killed process could not remove its address
    if folder.log.exists():
        folder.log.replace(folder.log.with_suffix(".log.1"))
    command = [sys.executable, "-m", "airflow_hive_opt.spark.session.shared_server"]
    given = {"conf": of_the_whole(conf), "bounds": asdict(bounds)}
    with folder.log.open("w") as output:
        process = subprocess.Popen(
            [*command, str(folder.folder)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it outlives this task
            text=True,
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        json.dump(given, process.stdin)
    log.info("starting the Spark that the tasks of this machine share, its log is %s", folder.log)
    until = time.monotonic() + _PATIENCE_TO_START
    while time.monotonic() < until:
        if (address := folder.address()) is not None:
            return address
        code = process.poll()
        if code == 0 and (address := _running(folder, stopped)) is not None:
            return address  # the process of a task that was killed was faster
        if code is not None:
            raise _start_error(folder)
        wait_or_stop(_BETWEEN, stopped)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # it takes no other signal while it starts
    raise SparkStartError(
        f"the shared Spark was not ready after {_PATIENCE_TO_START} s, see {folder.log}"
    )


def _start_error(folder: SharedFolder) -> SparkStartError:
    try:
        found = json.loads(folder.failure.read_text())
    except (OSError, ValueError):
        found = {"message": "the shared Spark could not start", "refused": False}
    kind = WrongSettingError if found["refused"] else SparkStartError
    return kind(f"{found['message']}. Its log is {folder.log}")


def _connected(address: Address, tag: str, pool: str) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    from airflow_hive_opt.spark.session.spark_compat import default_session

    on_interrupt = signal.getsignal(signal.SIGINT)
    os.environ["PYSPARK_GATEWAY_PORT"] = str(address.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = address.token
    try:
        launch: Any = launch_gateway
        gateway = launch()
        jvm = gateway.jvm
        java = default_session(jvm)
        context = jvm.org.apache.spark.api.java.JavaSparkContext(java.sparkContext())
        conf = SparkConf(_jvm=jvm, _jconf=java.sparkContext().getConf())
        connected = _borrowed()(gateway=gateway, jsc=context, conf=conf)
        connected.addJobTag(tag)
        connected.setLocalProperty("spark.scheduler.pool", pool)
        session = SparkSession(connected, java.newSession())
        leave_interrupted_calls(session)
        get_answers_at_once(session)
    except (PySparkException, Py4JError, OSError) as error:
        SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
        raise SparkStartError(f"the shared Spark does not answer: {in_words(error)}") from None
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, on_interrupt)  # PySpark's own cancels the jobs of all tasks
    return session


def _borrowed() -> Any:
    """PySpark's context for a Spark of several tasks, which no single task can stop."""
    from pyspark import SparkContext

    class Borrowed(SparkContext):
        def stop(self) -> None:
            """Does nothing; PySpark also calls it if a connection fails."""

    return Borrowed


def _give_back(session: SparkSession) -> None:
    """Frees this task's objects in the JVM, which otherwise keeps them; never fails."""
    from py4j.finalizer import ThreadSafeFinalizer

    context: Any = session.sparkContext
    gateway: Any = context._gateway
    with suppress(Exception):
        gc.collect()
        for reference in list(ThreadSafeFinalizer.finalizers.values()):
            if (found := reference()) is not None:
                gateway._gateway_client.garbage_collect_object(found._target_id, False)


def _forget(session: SparkSession) -> None:
    """Leaves this process without a Spark; never fails and asks the JVM nothing."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = session.sparkContext
    with suppress(Exception):
        context._accumulatorServer.shutdown()
    with suppress(Exception):
        shutil.rmtree(context._temp_dir, ignore_errors=True)
    with suppress(Exception):
        context._gateway.close()
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
