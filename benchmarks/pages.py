"""How long the pages take with many runs, on PostgreSQL.

    python -m benchmarks.pages --runs 10000 --tasks 50

One DAG has run every hour. Each run has left figures and a task instance for each task, as Airflow
keeps them. The API server's application answers in this process, after one request that does not
count. Prints milliseconds, the number of SQL statements, and the size of the answers.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.measure import noise
from tests.services.postgres import postgres

_DAG = "many_runs"


def main() -> None:
    """Fills a database and asks for the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        os.environ["AIRFLOW_HOME"] = folder
        os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
        os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"
        server.create_database("airflow")
        for name, driver in (("CONN", "psycopg"), ("CONN_ASYNC", "psycopg_async")):
            url = server.url("airflow", f"postgresql+{driver}")
            os.environ[f"AIRFLOW__DATABASE__SQL_ALCHEMY_{name}"] = url
        _measure(Path(folder), chosen)


def _measure(home: Path, chosen: argparse.Namespace) -> None:
    from airflow.settings import engine
    from airflow.utils.db import initdb
    from airflow.utils.session import create_session

    from tests.plugins.rows import add, add_dags

    initdb()
    began = time.monotonic()
    with create_session() as session:
        add_dags(session, [_DAG])
        for chunk in _chunks(chosen.runs, chosen.tasks):
            add(session, chunk)
    rows = chosen.runs * chosen.tasks
    print(f"{rows:,} task instances inserted in {time.monotonic() - began:.0f} s")
    with engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
    from tests.plugins.asking import Asking

    with Asking(home) as asking:
        for name, path in {
            "all tasks": "/api/tasks",
            "tasks of a DAG": f"/api/tasks?dag_id={_DAG}",
            "runs of a task": f"/api/dags/{_DAG}/tasks/task_07",
        }.items():
            asking.get(path)
            answers = [asking.get(path) for _ in range(chosen.repeats)]
            times = [answer.milliseconds for answer in answers]
            print(
                f"{name:<16}{median(times):8.0f} ms ({min(times):.0f}-{max(times):.0f})"
                f"{answers[-1].statements:5} statements{answers[-1].bytes:10,} bytes"
            )
    print(f"noise: {noise():.1f} ms")


def _chunks(runs: int, tasks: int) -> Iterator[list[object]]:
    from tests.plugins.rows import Ran, figures

    found: list[object] = []
    for run in range(runs):
        for task in range(tasks):
            kept = (run * 7 + task) % 300
            numbers = figures(kept, 1_824, read_bytes=kept * 10_000, pruned_bytes=10**7)
            found.append(Ran(_DAG, f"task_{task:02}", run, numbers))
        if len(found) >= 50_000:
            yield found
            found = []
    if found:
        yield found


if __name__ == "__main__":
    main()
