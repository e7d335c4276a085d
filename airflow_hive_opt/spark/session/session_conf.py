"""The settings of a session, and settings that hold for a block only."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.left_running import LeftRunning
from airflow_hive_opt.spark.session.spark_compat import condition_of, is_known_setting, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@contextmanager
def conf_set(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Applies ``conf`` for the block and then restores the session's settings.

    An error while restoring is only logged: the block may have written rows, so it must not fail.
    A statement that the block has left to its server keeps its settings, and its session.
    """
    before = {name: session.conf.get(name) if is_set(session, name) else None for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    except LeftRunning:
        before = {}
        raise
    finally:
        try:
            for name, old in before.items():
                if old is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, old)
        except (PySparkException, Py4JError, OSError) as error:
            log.warning("settings of the Spark session could not be restored: %s", error)


def in_effect(session: SparkSession, name: str) -> str | None:
    """The setting's value, explicit or default; ``None`` if this Spark has no such setting."""
    # PySpark takes ten milliseconds to raise the error for a setting that this Spark does not have
    if not is_remote(session) and not is_known_setting(session, name) and not is_set(session, name):
        return None
    try:
        return str(session.conf.get(name))
    except (PySparkException, Py4JError) as error:
        if is_remote(session) and condition_of(error) != "SQL_CONF_NOT_FOUND":
            raise  # no answer of the server is no default
        return None


def all_set(session: SparkSession) -> dict[str, str]:
    """All settings with an explicit value."""
    if is_remote(session):
        return settings_of(session)
    conf: Any = session._jsparkSession.sessionState().conf()
    entries = conf.getAllConfs().mkString("\0").split("\0")  # in one call to the JVM
    return dict(entry.split(" -> ", 1) for entry in entries if " -> " in entry)


def is_set(session: SparkSession, name: str) -> bool:
    """Whether the setting has an explicit value; a default does not count."""
    if is_remote(session):
        return name in settings_of(session)
    conf: Any = session._jsparkSession.sessionState().conf()
    return bool(conf.contains(name))
