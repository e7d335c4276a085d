"""What does it cost to run a statement from Airflow, and to wait for its partitions?

    python -m benchmarks.overhead --repeats 3 --warm-repeats 10 --pokes 20

- On a standalone cluster of two workers: the operator against a bare ``spark-submit`` of the same
  SQL, in total and until Spark's first job.
- In one warm local session: the operator against ``session.sql``.
- A poke of ``RequiredPartitionsSensor`` and a check of its trigger, for 1 and for 1,000 partitions.

Contenders take turns. The first run of each does not count, except for pokes. Results go to
``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.submission import prepare_environment
from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, Record, about, spread
from tests.services.metastore import metastore
from tests.services.postgres import postgres
from tests.services.processes import HOST
from tests.services.standalone import Standalone, standalone
from tests.services.thrift import add_partitions, create_database, create_table, thrift_client

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.services.metastore import MetastoreService

CLUSTER, LOCAL = "standalone cluster", "warm local session"
BARE, OPERATOR, PLAIN = "bare spark-submit", "operator", "session.sql"
SENSOR, TRIGGER = "sensor's poke", "trigger's look"
DAYS = 1_000
SQL = (
    "SELECT count(*) AS n, sum(s.amount) AS amount FROM sales s "
    "JOIN days d ON s.ds = d.ds WHERE d.month = 3"
)
# Never parsed: the sensor finds the partitions listed.
_WAITED_FOR = "SELECT 1"


def main() -> None:
    """Runs all parts and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="on the cluster")
    parser.add_argument("--warm-repeats", type=int, default=10)
    parser.add_argument("--pokes", type=int, default=20)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["AIRFLOW_HOME"] = str(folder / "airflow")
        os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"
        runs = in_session(folder, chosen.warm_repeats)
        with standalone(folder / "cluster") as cluster:
            runs += on_cluster(cluster, folder, chosen.repeats)
        with postgres() as server, metastore(folder / "metastore", server) as service:
            pokes = waiting(service, folder, chosen.pokes)
    write(runs, pokes, asdict(Machine()), chosen.results)


def in_session(folder: Path, repeats: int) -> list[Record]:
    """Builds the tables and runs both contenders in the same session."""
    with quiet_session("overhead", conf(folder, "local[2]")) as session:
        build(session)

        def plain() -> None:
            session.newSession().sql(SQL).take(20)

        def operator() -> None:
            execute(folder, None, {})

        return alternated(LOCAL, {PLAIN: plain, OPERATOR: operator}, repeats)


def on_cluster(cluster: Standalone, folder: Path, repeats: int) -> list[Record]:
    """Runs both contenders as separate applications."""
    logs = folder / "events"
    logs.mkdir()
    settings = {
        **conf(folder, cluster.url),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.executor.memory": "512m",
    }
    del settings["spark.master"]
    os.environ["AIRFLOW_CONN_CLUSTER"] = json.dumps({"conn_type": "spark", "host": cluster.url})

    def bare() -> None:
        pairs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        script = str(Path(__file__).with_name("plain_submit.py"))
        subprocess.run(
            ["spark-submit", "--master", cluster.url, *pairs, script, SQL],
            check=True,
            capture_output=True,
        )

    def operator() -> None:
        execute(folder, "cluster", settings)

    prepare_environment()
    return alternated(CLUSTER, {BARE: bare, OPERATOR: operator}, repeats, logs)


def alternated(
    where: str, contenders: Mapping[str, Callable[[], None]], repeats: int, logs: Path | None = None
) -> list[Record]:
    """Runs the contenders in turn; the first round does not count."""
    runs = []
    for round_ in range(repeats + 1):
        for name, action in contenders.items():
            seen = set(logs.iterdir()) if logs else set()
            before, began = time.time(), time.monotonic()
            action()
            run: Record = {"where": where, "contender": name}
            run |= {"seconds": time.monotonic() - began, "noise": noise()}
            if logs:
                (log,) = set(logs.iterdir()) - seen
                run["to first job"] = first_job(log) - before
            if round_:
                runs.append(run)
    return runs


def first_job(log: Path) -> float:
    """The time when Spark's first job was submitted, in epoch seconds, from its event log."""
    with log.open() as events:
        return next(
            event["Submission Time"] / 1000
            for event in map(json.loads, events)
            if event["Event"] == "SparkListenerJobStart"
        )


def waiting(service: MetastoreService, folder: Path, pokes: int) -> list[Record]:
    """Checks for 1 and for 1,000 existing partitions; raises unless each makes one call."""
    from airflow_hive_opt.documents.required import RequiredPartitions, write
    from airflow_hive_opt.metastores.required import Required
    from airflow_hive_opt.provider.waiting import statement_digest
    from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor
    from airflow_hive_opt.triggers.partitions import RequiredPartitionsTrigger

    document = {"conn_type": "hive_metastore", "host": HOST, "port": service.port}
    os.environ["AIRFLOW_CONN_METASTORE_DEFAULT"] = json.dumps(document)
    columns = [("id", "int")]
    with thrift_client(service) as client:
        create_database(client, "waited", str(folder / "waited"))
        create_table(client, "waited.fact", columns, [("p", "int")], str(folder / "waited" / "f"))
        parts = [((str(number),), f"/nowhere/{number}", {}) for number in range(1_000)]
        add_partitions(client, "waited.fact", columns, parts)
    runs = []
    for wanted in (1, 1_000):
        tuples = tuple((number,) for number in range(wanted))
        found = context(f"wait_{wanted}")
        sensor = RequiredPartitionsSensor(
            task_id="wait", sql=_WAITED_FOR, descriptor_path=str(folder), deferrable=False
        )
        path = sensor.attempt_path(found)
        table = Required("waited.fact", ("p",), ("int",), ("p",), tuples)
        whose = (statement_digest(_WAITED_FOR, None), (), found["ti"].id)
        write(RequiredPartitions(*whose, (table,)), path)
        trigger = RequiredPartitionsTrigger(
            str(path), *whose, "metastore_default", 60, "2100-01-01"
        )
        with asyncio.Runner() as runner, counted() as calls:
            looks = {
                SENSOR: lambda sensor=sensor, found=found: sensor.poke(found).is_done,
                TRIGGER: lambda trigger=trigger, runner=runner: runner.run(trigger.poll()).found,
            }
            for _ in range(pokes):
                for name, look in looks.items():
                    asked, began = len(calls), time.monotonic()
                    if not look():
                        raise AssertionError("a partition is missing")
                    run: Record = {"partitions": wanted, "contender": name}
                    run |= {"seconds": time.monotonic() - began, "noise": noise()}
                    runs.append(run | {"calls": calls[asked:]})
                    if calls[asked:] != ["get_partition_names"]:
                        raise AssertionError(f"{name} asked {calls[asked:]}")
            runner.run(trigger.close())
    return runs


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of the metastore calls that any client in this process makes."""
    from airflow_hive_opt.metastores.thrift.connection import ThriftConnection

    calls: list[str] = []
    real = ThriftConnection.call

    def call(self: ThriftConnection, method: str, *arguments: object) -> Any:
        calls.append(method)
        return real(self, method, *arguments)

    ThriftConnection.call = call  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        ThriftConnection.call = real  # type: ignore[method-assign]


def build(session: SparkSession) -> None:
    """Creates sales of 1,000 days, one partition for each, and the days with their months."""
    days = session.range(DAYS).selectExpr("CAST(id AS INT) ds", "CAST(id DIV 30 AS INT) month")
    days.coalesce(1).write.saveAsTable("days")
    rows = session.range(DAYS * 10).selectExpr(
        "id AS item", "id % 7 AS amount", f"CAST(id % {DAYS} AS INT) ds"
    )
    rows.repartition(2, "ds").write.partitionBy("ds").saveAsTable("sales")


def execute(folder: Path, conn_id: str | None, settings: Mapping[str, str]) -> None:
    """Runs the operator as a task does."""
    from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

    summary = MapJoinPruneOperator(
        task_id="t", sql=SQL, conn_id=conn_id, conf=dict(settings), descriptor_path=str(folder)
    ).execute(context("t"))
    if summary["kept"] != 30:
        raise AssertionError(f"{summary['kept']} partitions kept, not 30")


def context(task_id: str) -> Any:
    """The part of a task's context that the operators need; each is a separate attempt."""
    instance = SimpleNamespace(
        dag_id="d", run_id=str(time.time_ns()), task_id=task_id, map_index=-1, try_number=1
    )
    instance.max_tries, instance.xcom_push = 0, lambda **_: None
    instance.id = instance.run_id
    return {"ti": instance, "params": {}}


def conf(folder: Path, master: str) -> dict[str, str]:
    """Spark's settings, the same for all contenders."""
    return {**embedded_conf(folder / "warehouse", master), "spark.sql.shuffle.partitions": "2"}


def write(runs: list[Record], pokes: list[Record], machine: Record, folder: Path) -> None:
    """Writes ``overhead.json`` and ``overhead.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = json.dumps({"machine": machine, "runs": runs, "pokes": pokes}, indent=1)
    (folder / "overhead.json").write_text(document)
    lines = ["| where | contender | seconds | until Spark's first job, s |", "|---|---|---:|---:|"]
    ratios = []
    for where, other in ((LOCAL, PLAIN), (CLUSTER, BARE)):
        of = {
            name: [run for run in runs if (run["where"], run["contender"]) == (where, name)]
            for name in (other, OPERATOR)
        }
        for name, found in of.items():
            first = [run["to first job"] for run in found if "to first job" in run]
            seconds = spread([run["seconds"] for run in found])
            lines.append(f"| {where} | {name} | {seconds} | {spread(first) if first else ''} |")
        mine, theirs = (median(run["seconds"] for run in of[name]) for name in (OPERATOR, other))
        ratios.append(f"{where}: operator / {other} {mine / theirs:.2f}, {mine - theirs:+.2f} s")
    waits = ["| partitions waited for | looked by | milliseconds | metastore calls |"]
    waits.append("|---:|---|---:|---:|")
    for wanted in (1, 1_000):
        for name in (SENSOR, TRIGGER):
            found = [
                run for run in pokes if (run["partitions"], run["contender"]) == (wanted, name)
            ]
            seconds = spread([1000 * run["seconds"] for run in found])
            calls = max(len(run["calls"]) for run in found)
            waits.append(f"| {wanted:,} | {name} | {seconds} | {calls} |")
    text = [
        "# What running from Airflow costs",
        "",
        f"A star join that needs 30 of {DAYS:,} partitions, median seconds with the range and the "
        "number of runs. The operator's time is that of its `execute`, key query, partition list "
        "and report included; Airflow's own scheduling is not.",
        "",
        *lines,
        "",
        *(f"- {ratio}" for ratio in ratios),
        "",
        "One look of a sensor whose partitions are all there, of 1,000 that the table has. A "
        "sensor connects for each poke, a trigger once.",
        "",
        *waits,
        "",
        *about(machine, [run["noise"] for run in (*runs, *pokes)]),
    ]
    (folder / "overhead.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
