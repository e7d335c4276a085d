"""The embedded Spark: a local session on a warehouse in a folder."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.embedded_warehouse import WAREHOUSE_DIR
from airflow_hive_opt.spark.session.interrupted_calls import leave_interrupted_calls
from airflow_hive_opt.spark.session.java import SparkStartError, WrongSettingError, ensure_java
from airflow_hive_opt.spark.session.prompt_answers import get_answers_at_once
from airflow_hive_opt.spark.session.spark_log import SparkLog

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
# This logger repeats the exception's message as JSON.
logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)

SHARED = "spark.airflow_hive_opt.shared"
"""A setting that says that several tasks use this Spark."""
_METASTORE_URIS = ("hive.metastore.uris", "spark.hadoop.hive.metastore.uris")


def has_spark() -> bool:
    """Whether a Spark runs in this process."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


@lru_cache(maxsize=1)
def is_shared(context: SparkContext) -> bool:
    """Whether several tasks use this Spark."""
    java: Any = context._jsc
    return bool(java.sc().conf().contains(SHARED))


@contextmanager
def spark_session(name: str, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session with Hive support; a new session of this process's Spark if there is one.

    Raises :class:`SparkStartError`.
    """
    from pyspark.sql import SparkSession

    if has_spark():
        log.info("using the Spark session of this process")
        session = SparkSession.builder.getOrCreate().newSession()
        leave_interrupted_calls(session)
        get_answers_at_once(session)
        for key, value in conf.items():
            if session.conf.isModifiable(key):
                set_setting(session, key, value)
        yield session
        return
    from airflow_hive_opt.spark.session.spark_compat import without_pandas

    check_versions()
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with without_pandas(), closing(SparkLog(conf)) as spark_log:
        session = _start(name, conf, spark_log)
        try:
            leave_interrupted_calls(session)
            get_answers_at_once(session)
            yield session
        finally:
            stop_spark()


def set_setting(session: SparkSession, name: str, value: str) -> None:
    """Changes one setting of the session; raises :class:`WrongSettingError`."""
    from pyspark.errors import PySparkException

    try:
        session.conf.set(name, value)
    except PySparkException as error:
        raise WrongSettingError(f"conf: {in_words(error)}") from error


def own_session(session: SparkSession) -> SparkSession:
    """A session for one run, with the views, functions, settings and database of ``session``.

    Another run in ``session`` then does not see this run's settings. Over Spark Connect every task
    already has a session of its own, so it returns ``session`` itself.
    """
    from pyspark.sql import SparkSession

    if is_remote(session):
        return session
    java: Any = session._jsparkSession
    return SparkSession(session.sparkContext, java.cloneSession())


def stop_spark() -> None:
    """Stops this process's Spark and ends its JVM; never fails. Does nothing if none runs."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        with suppress(Py4JError, OSError):  # the JVM has already ended
            SparkContext._active_spark_context.stop()
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        with suppress(Py4JError, OSError):
            gateway.shutdown()
            gateway.proc.stdin.close()  # the JVM ends with its standard input
        try:
            gateway.proc.wait(timeout=60)
        except subprocess.TimeoutExpired:  # the statement has run, so this must not fail
            gateway.proc.kill()
            gateway.proc.wait()
        SparkContext._gateway = None
        SparkContext._jvm = None


def kill_spark() -> None:
    """Ends this process's JVM, and with it Spark's work; also for signal handlers.

    A call that waits for the JVM in another frame then fails.
    """
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is not None and gateway.proc is not None:
        gateway.proc.terminate()  # runs Spark's shutdown hooks
        try:
            gateway.proc.wait(timeout=10)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()


def make_warehouse(folder: str) -> None:
    """Creates the folder of a warehouse on a local disk; raises :class:`SparkStartError`.

    Spark itself creates one in another storage.
    """
    scheme, colon, _ = folder.partition(":")
    if not folder or (colon and scheme != "file" and "/" not in scheme):
        return
    try:
        Path(folder.removeprefix("file:")).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SparkStartError(f"the warehouse folder can't be created: {error}") from None


def _start(name: str, conf: Mapping[str, str], spark_log: SparkLog) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from airflow_hive_opt.spark.session.spark_compat import root_cause
    from airflow_hive_opt.spark.session.statement_errors import is_refusal

    if not any(key in conf for key in _METASTORE_URIS):
        make_warehouse(conf.get(WAREHOUSE_DIR, ""))
    builder = SparkSession.builder.appName(name).enableHiveSupport()
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        spark_log.launch()
        session = builder.getOrCreate()
        session.catalog.databaseExists("default")  # opens the metastore now, not later
    except PySparkException as error:
        # read the message before the JVM ends
        kind, words = root_cause(error)
        refused = is_refusal(error) or kind.endswith("IllegalArgumentException")
        message = _start_failure(str(error), words, conf)
        stop_spark()
        if refused:
            raise WrongSettingError(f"conf: {words}") from None
        if "JAVA_GATEWAY_EXITED" in message and (said := spark_log.last_words()):
            message = f"Spark could not start: {said}"
        raise SparkStartError(message) from None
    except Exception as error:  # noqa: BLE001 - Py4J has no class for a driver that ends at once
        message = in_words(error)
        stop_spark()
        if isinstance(error, OSError):
            message = f"its Java process has ended: {message}"
        raise SparkStartError(f"Spark could not start: {message}") from None
    return session


def _start_failure(message: str, cause: str, conf: Mapping[str, str]) -> str:
    no_metastore = "SessionHiveMetaStore" in message
    if no_metastore and (uris := _metastore_uris(conf)):
        return (
            f"no answer from {uris}, which is hive.metastore.uris. Is the metastore running, can "
            "this machine connect to it, does it require Kerberos or TLS?"
        )
    if no_metastore or "XSDB6" in message or "another instance of Derby" in message:
        return (
            f"the embedded metastore of {conf.get(WAREHOUSE_DIR)} can't be opened. Another Spark "
            "application is probably using it: Derby serves one at a time. Wait for it, let the "
            "tasks share a Spark ([hive_opt] session = shared, with equal conf), put them in an "
            "Airflow pool of one slot, or use a metastore service. `airflow-hive-opt session stop` "
            "ends a shared Spark that no task uses"
        )
    return f"Spark could not start: {cause}"


def _metastore_uris(conf: Mapping[str, str]) -> str:
    """``hive.metastore.uris`` of this process's Spark, also from its configuration files."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    found = context._jsc.hadoopConfiguration().get("hive.metastore.uris") if context else None
    return str(found or conf.get("hive.metastore.uris") or "").strip()


def check_versions() -> None:
    """Raises ``SparkStartError`` if releases of pyspark and pyspark-client are mixed.

    pyspark-client installs its files into pyspark's own folder. Patch releases of one minor version
    work together.
    """
    from pyspark.version import __version__ as files

    installed = version("pyspark")
    if files.split(".")[:2] != installed.split(".")[:2]:
        raise SparkStartError(
            f"pyspark {installed} is installed, but pyspark-client has overwritten its files "
            f"with version {files}. Repair it: "
            f"pip install --force-reinstall --no-deps pyspark=={installed}"
        )
