"""Spark Connect: a session on a server elsewhere.

A remote session has SQL, data frames and settings, but no JVM that this process can call.
``connect_frames`` and ``connect_catalog`` use SQL instead.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.session.java import SparkStartError, WrongSettingError
from airflow_hive_opt.spark.session.statement_errors import is_refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

DEFAULT_PORT = 15002
"""Of a Spark Connect server."""

# Without any answer yet, the client waits for some seconds only.
_FIRST_RETRIES = 4
_PATIENCE_TO_STOP = 2.0  # seconds


def is_remote(session_or_frame: object) -> bool:
    """Whether a session, or a frame of one, is Spark Connect's."""
    return ".connect." in type(session_or_frame).__module__


@contextmanager
def remote_session(
    url: str, conf: Mapping[str, str], may_run: Callable[[], bool] = lambda: False
) -> Iterator[SparkSession]:
    """A new session of the server at ``url``, ``sc://host:port/;parameters``, until the block ends.

    It takes the settings of ``conf`` that a session may change; the server's own settings stay.
    If ``may_run`` says at the end that a statement may still run there, the server keeps the
    session, since it would not tell how a statement ends whose session is gone.
    Raises :class:`SparkStartError`, which names the server but never the URL's parameters, and
    :class:`WrongSettingError`.
    """
    session = _opened(url)
    try:
        for name, value in conf.items():
            try:
                session.conf.set(name, value)
            except AnalysisException as error:
                words = in_words(error)
                log.warning("conf: the Spark Connect server did not change %s: %s", name, words)
            except PySparkException as error:
                if is_refusal(error) or _is_about(name, error):
                    raise WrongSettingError(f"conf: {in_words(error)}") from None
                raise SparkStartError(
                    f"the Spark Connect server at {server_of(url)} did not take the setting "
                    f"{name}: {in_words(error)}. Was it started again?"
                ) from None
        yield session
    finally:
        try:
            if may_run():
                session.client.close()
            else:
                session.stop()
        except Exception as error:  # noqa: BLE001 - a statement that has run does not fail for it
            log.warning("the Spark Connect session could not be closed: %s", in_words(error))


def _is_about(name: str, error: PySparkException) -> bool:
    return isinstance(error, IllegalArgumentException) and name in str(error)


def raise_if_lost(session: SparkSession) -> None:
    """Raises Spark's error if the server has ended, or was started again, during the session.

    What the session could not look up since then says nothing about tables or settings.
    """
    if is_remote(session):
        session.conf.get("spark.app.id", None)


def end(session: SparkSession) -> None:
    """Stops the session's work on the server, running and future; also for signal handlers."""
    from_handler(lambda: release(session))


def from_handler(stop: Callable[[], object]) -> threading.Thread:
    """Runs ``stop`` in another thread, because this one may be inside a call to the server.

    Waits for two seconds at most: this thread may hold a lock of the client, which it gives back
    after the handler. Returns the other thread.
    """
    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    stopping.join(_PATIENCE_TO_STOP)
    return stopping


@contextmanager
def stage_lines(session: Any) -> Iterator[dict[int, str]]:
    """One log line for each running stage, by stage number; updated until the block ends."""
    lines: dict[int, str] = {}

    def told(stages: Any, inflight_tasks: int, operation_id: Any, done: bool) -> None:  # noqa: ARG001
        lines.clear()
        for stage in stages or ():
            if not stage.done and not done:
                lines[stage.stage_id] = (
                    f"stage {stage.stage_id}, {stage.num_completed_tasks:,} of "
                    f"{stage.num_tasks:,} tasks, {stage.num_bytes_read:,} bytes read"
                )

    session.registerProgressHandler(told)
    try:
        yield lines
    finally:
        session.removeProgressHandler(told)


def _opened(url: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions of packages that are not used here
            from pyspark.sql.connect.session import SparkSession as RemoteSession

            from airflow_hive_opt.spark.session.connect_retries import BoundedRetries
    except ImportError as error:
        raise SparkStartError(
            "Spark Connect needs PySpark 4.0, and further packages: "
            f"pip install 'airflow-hive-opt[spark-submit,connect]' ({error})"
        ) from None
    server = server_of(url)
    try:
        session = RemoteSession(url)
    except (PySparkException, ValueError):  # its message contains the URL's parameters
        raise SparkStartError(f"{server} is not the address of a Spark Connect server") from None
    client = session.client
    try:
        client.set_retry_policies([BoundedRetries(_FIRST_RETRIES)])
        log.info("connected to Spark %s at %s", session.version, server)
        client.set_retry_policies([BoundedRetries()])
    except PySparkException as error:
        client.close()
        raise SparkStartError(
            f"no Spark Connect server answers at {server}: {in_words(error)}. Is it running, can "
            "this machine connect to it, does it require a token or TLS?"
        ) from None
    return session


def server_of(url: str) -> str:
    """Only the host and the port of the URL.

    >>> server_of("sc://spark:15003/;token=secret"), server_of("sc://me:secret@spark")
    ('spark:15003', 'spark:15002')
    """
    try:
        parts = urlsplit(url)
        return f"{parts.hostname}:{parts.port or DEFAULT_PORT}"
    except ValueError:
        return "what the connection names"


def release(session: Any) -> None:
    """Ends the session on the server, and what runs in it; an error is only logged."""
    try:
        session.client.release_session()
    except Exception as error:  # noqa: BLE001 - whoever waits for the server will say so
        log.warning("the Spark Connect server did not stop the statement: %s", in_words(error))
