"""A client of a Spark Connect server that begins one statement and is then killed.

``python -m tests.spark.connect_writer URL SQL`` prints the IDs of the operation before it begins,
and another line after it has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from pyspark.errors import PySparkException

from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.spark.session.kept_operation import kept


@contextmanager
def begun(url: str, sql: str) -> Iterator[tuple[subprocess.Popen, OperationId]]:
    """A client that has just told of its operation, as another process; it is killed at the end."""
    command = [sys.executable, "-m", __name__, url, sql]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        try:
            yield client, OperationId(**json.loads(client.stdout.readline()))
        finally:
            client.kill()


def main(url: str, sql: str) -> None:
    """Runs the statement."""

    def begins(found: OperationId) -> None:
        print(json.dumps(asdict(found)), flush=True)

    with remote_session(url, {}) as session:
        with suppress(PySparkException), kept(session, begins):
            session.sql(sql)
        print("ended", flush=True)
        sys.stdin.read()  # until it is killed: the session must not end


if __name__ == "__main__":
    main(*sys.argv[1:])
