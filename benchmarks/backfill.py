"""A backfill of one statement a day: a Spark for each task, a shared one, and plain spark-submit.

The fourth contender is a task without work, which shows Airflow's own part of the time.

    python -m benchmarks.backfill --days 30

All of Airflow's services, PostgreSQL and a metastore run on this machine, with the small tables of
the end-to-end tests. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from airflow_hive_opt.spark.session.shared_folder import FOLDER_VARIABLE, SharedFolder
from benchmarks.measure import Machine, noise
from benchmarks.report import RESULTS
from tests.services.airflow import Airflow, airflow, wait_for
from tests.services.metastore import metastore
from tests.services.postgres import postgres
from tests.services.standalone import standalone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROJECT = Path(__file__).resolve().parents[1]
NO_WORK = "no_work"
DAGS = ("session_shared", "session_task", "spark_submit", NO_WORK)
TASK = "sales_of_the_day"
QUERY = (
    "SELECT count(*), sum(ss_ext_sales_price), CAST(d_date AS STRING) FROM store_sales "
    "JOIN date_dim ON ss_sold_date_sk = d_date_sk WHERE d_date BETWEEN '{}' AND '{}' "
    "GROUP BY d_date"
)


@dataclass(frozen=True)
class Backfill:
    """One backfill.

    ``cpu_seconds`` are of the whole machine, and so are ``peak_bytes``, less what it used before.
    ``task_seconds`` are the durations of the tasks, ``statement_seconds`` of local task and join.
    ``rows_equal`` is ``None`` for tasks that write none.
    """

    dag_id: str
    at_once: int
    days: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    task_seconds: list[float]
    statement_seconds: list[float]
    rows_equal: bool | None
    noise: float

    @property
    def overhead(self) -> float | None:
        """Median seconds of a task beyond its statement."""
        pairs = zip(self.task_seconds, self.statement_seconds, strict=False)
        return (
            statistics.median(task - own for task, own in pairs) if self.statement_seconds else None
        )


def main() -> None:
    """Runs the backfills and writes the results; exits 1 if rows differ or a run fails."""
    chosen = _arguments()
    done: list[Backfill] = []
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each task would compile every module
    os.environ["BENCHMARK_SCRIPT"] = str(PROJECT / "benchmarks" / "plain_submit.py")
    with _set() as (running, session):
        for at_once in chosen.at_once:
            for dag_id in chosen.dags:
                done.append(_backfill(running, session, dag_id, at_once, chosen.days))
                for shared in SharedFolder.all():  # the next one must not find it
                    shared.kill()
                print(_line(done[-1]), flush=True)
                _write(done, chosen.results)
    sys.exit(1 if any(each.rows_equal is False for each in done) else 0)


def _write(done: list[Backfill], folder: Path) -> None:
    document = {"machine": asdict(Machine()), "backfills": [asdict(each) for each in done]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "backfill.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "backfill.md").write_text(_table(done))


@contextmanager
def _set() -> Iterator[tuple[Airflow, SparkSession]]:
    """Airflow with the DAGs of this benchmark, and a plain session on its metastore."""
    from airflow_hive_opt.spark.session.session import spark_session

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[FOLDER_VARIABLE] = str(folder / "sessions")
        with (
            postgres() as database,
            metastore(folder / "metastore", database) as service,
            standalone(folder / "cluster") as cluster,
        ):
            (folder / "airflow").mkdir()
            dags = (PROJECT / "dags", PROJECT / "benchmarks" / "dags")
            with airflow(folder / "airflow", dags, database, service, cluster) as running:
                conf = {"spark.master": "local[1]", **service.spark_conf()}
                try:
                    with spark_session("plain", conf) as session:
                        session.sparkContext.setLogLevel("ERROR")
                        yield running, session
                finally:
                    for shared in SharedFolder.all():
                        shared.kill()


def _backfill(
    running: Airflow, session: SparkSession, dag_id: str, at_once: int, days: int
) -> Backfill:
    session.sql("TRUNCATE TABLE sales_by_day")
    first = date(2000, 11, 1)
    last = first + timedelta(days - 1)
    asked = {
        "dag_id": dag_id,
        "from_date": f"{first}T00:00:00Z",
        "to_date": f"{last}T00:00:00Z",
        "max_active_runs": at_once,
        "reprocess_behavior": "completed",
    }
    busy, cpu, began = noise(), _cpu(), time.monotonic()
    with _peak() as peak:
        number = running.ask("/api/v2/backfills", asked)["id"]
        wait_for(lambda: running.ask(f"/api/v2/backfills/{number}")["completed_at"], seconds=3600)
    seconds, cpu = time.monotonic() - began, _cpu() - cpu
    runs = running.runs(dag_id, "backfill")
    failed = [run["dag_run_id"] for run in runs if run["state"] != "success"]
    if failed:
        sys.exit(f"{dag_id}: {len(failed)} runs failed, such as {failed[0]}")
    tasks = [running.task(dag_id, run["dag_run_id"], TASK)["duration"] for run in runs]
    ours = dag_id.startswith("session_")
    summaries = [running.summary(dag_id, run["dag_run_id"], TASK) for run in runs if ours]
    own = [found["seconds"]["local task"] + found["seconds"]["map join"] for found in summaries]
    session.sql("REFRESH TABLE sales_by_day")
    written = session.sql("SELECT sales, revenue, CAST(day AS STRING) FROM sales_by_day").collect()
    wanted = session.sql(QUERY.format(first, last)).collect()
    equal = sorted(map(tuple, written)) == sorted(map(tuple, wanted)) and len(wanted) == days
    if dag_id == NO_WORK:
        equal = None
    return Backfill(dag_id, at_once, days, seconds, cpu, peak[0], tasks, own, equal, busy)


def _cpu() -> float:
    times = psutil.cpu_times()
    return times.user + times.system


@contextmanager
def _peak() -> Iterator[list[int]]:
    """The most memory that the machine used in the block, less what it used before."""
    before, found, ended = psutil.virtual_memory().used, [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            found[0] = max(found[0], psutil.virtual_memory().used - before)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield found
    finally:
        ended.set()
        watching.join()


_ROWS = {True: "equal", False: "DIFFER", None: ""}


def _line(found: Backfill) -> str:
    overhead = "" if found.overhead is None else f"{found.overhead:.1f}"
    return (
        f"| {found.dag_id} | {found.at_once} | {found.days} | {found.seconds:.0f} | "
        f"{found.cpu_seconds:.0f} | {found.peak_bytes / 2**20:,.0f} | "
        f"{statistics.median(found.task_seconds):.1f} | {overhead} | "
        f"{_ROWS[found.rows_equal]} |"
    )


def _table(done: list[Backfill]) -> str:
    lines = [
        "# A backfill of one statement a day",
        "",
        "`make bench-backfill` measures it: Airflow, PostgreSQL and a metastore on one machine of "
        f"{Machine().cores} cores. Seconds are of the whole backfill. CPU seconds and memory are "
        "of the whole machine; memory less what was used before. The overhead is a task's time "
        "beyond local task and statement. `no_work` is a task that does nothing.",
        "",
        "| DAG | runs at once | days | s | CPU s | peak MiB | a task, s | overhead, s | rows |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
        *map(_line, done),
    ]
    return "\n".join(lines) + "\n"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--days", type=int, choices=range(1, 31), default=30, metavar="N")
    add("--at-once", type=int, nargs="+", default=(1, 4))
    add("--dags", nargs="+", choices=DAGS, default=DAGS)
    add("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
