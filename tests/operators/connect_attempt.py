"""Attempts of one task on a Spark Connect server: in this process, or in one that is killed.

``python -m tests.operators.connect_attempt FOLDER SQL TRY [SECONDS]`` runs an attempt as Airflow
does: when it gets SIGTERM, it calls ``on_kill`` and goes on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import connect_operations


class Store:
    """What Airflow keeps of a task between its tries, in a file that a killed process leaves."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "store.json"

    def _all(self) -> dict[str, Any]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def get(self, key: str) -> Any:
        """As Airflow's store."""
        return self._all().get(key)

    def set(self, key: str, value: Any) -> None:
        """As Airflow's store."""
        self._write({**self._all(), key: value})

    def delete(self, key: str) -> None:
        """As Airflow's store."""
        self._write({name: value for name, value in self._all().items() if name != key})

    def _write(self, values: dict[str, Any]) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(values))
        new.replace(self._file)


STARTED = datetime(2026, 1, 31, tzinfo=timezone.utc)  # only clears of finished runs change it


def context(
    folder: Path, try_number: int, max_tries: int = 1, clear_number: int = 0
) -> dict[str, Any]:
    """The context of one try; Airflow has a store if the folder's name says so.

    Clearing the task raises ``max_tries``; clearing it or another one raises ``clear_number``.
    """
    instance = SimpleNamespace(
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=-1,
        try_number=try_number,
        max_tries=max_tries,
    )
    instance.xcom_push = lambda key, value: None
    run = SimpleNamespace(clear_number=clear_number, start_date=STARTED)
    found = {"ti": instance, "params": {}, "dag_run": run, "outlet_events": {}}
    return {**found, "task_state_store": Store(folder)} if folder.name == "store" else found


def made(folder: Path, sql: str, **options: Any) -> MapJoinPruneOperator:
    """The task's operator, on the connection ``server``."""
    return MapJoinPruneOperator(
        task_id="t",
        sql=sql,
        conn_id="server",
        descriptor_path=str(folder),
        local_task="spark",
        conf={"spark.sql.shuffle.partitions": "1"},
        **options,
    )


def record_of(folder: Path) -> bytes | None:
    """The record of a statement that has begun."""
    if folder.name == "store":
        found = Store(folder).get("spark_connect_operation")
        return found and found.encode()
    file = folder / "d" / "r" / "t" / "-1" / "operation.json"
    return file.read_bytes() if file.exists() else None


@contextmanager
def first_attempt(
    folder: Path, sql: str, number: int = 1, seconds: float | None = None
) -> Iterator[subprocess.Popen]:
    """The first attempt, or that of another number, as another process; it is killed at the end.

    If ``seconds`` are given, it is deferred after so many of its statement.
    """
    given = [] if seconds is None else [str(seconds)]
    command = [sys.executable, "-m", __name__, str(folder), sql, str(number), *given]
    with (folder / ("first.log" if number == 1 else f"{number}.log")).open("w") as log:
        task = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
        try:
            yield task
        finally:
            task.kill()
            task.wait()


def main(folder: str, sql: str, number: str, seconds: str = "") -> None:
    """Runs the attempt."""
    if seconds:
        connect_operations.SECONDS_IN_WORKER = float(seconds)
    operator = made(Path(folder), sql, deferrable=bool(seconds))
    signal.signal(signal.SIGTERM, lambda *_: operator.on_kill())
    operator.execute(context(Path(folder), int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
