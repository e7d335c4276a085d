"""The Spark session of a format's tests: in this process, or on a Spark Connect server.

``make test-iceberg-4.1 CONNECT=1`` runs the tests over Spark Connect, without those that need the
JVM of the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

OVER_CONNECT = bool(os.environ.get("CONNECT"))
needs_jvm = pytest.mark.skipif(OVER_CONNECT, reason="Spark Connect has no call for it")


@contextmanager
def lake_session(name: str, conf: Mapping[str, str], folder: Path) -> Iterator:
    """A session with these settings; of a server with them, which ends with the block."""
    from airflow_hive_opt.spark.session.connect import remote_session
    from airflow_hive_opt.spark.session.session import spark_session
    from tests.services.spark_connect import spark_connect

    if OVER_CONNECT:
        with (
            spark_connect(folder / "connect", conf) as server,
            remote_session(server.url, {}) as session,
        ):
            yield session
        return
    with spark_session(name, conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session


def another_session(session):
    """A session with settings and views of its own; over Spark Connect the same one."""
    return session if OVER_CONNECT else session.newSession()
