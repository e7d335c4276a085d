"""Settings of a session that hold for a block, and leave no trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def conf_set(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets ``conf`` for the block; what was not set before is not set after it either."""
    before = {name: session.conf.get(name) if is_set(session, name) else None for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)


def is_set(session: SparkSession, name: str) -> bool:
    """Whether somebody has set it: its default does not count."""
    if is_remote(session):
        return name in session.conf.getAll
    conf: Any = session._jsparkSession.sessionState().conf()
    return bool(conf.contains(name))
