"""What do the tasks cost whose local task runs in the worker, and those with Spark's?

    python -m benchmarks.tasks --partitions 20000 --repeats 5

Each task is an operator's ``execute`` or a sensor's ``poke`` in a process that has just started, on
a statement that needs 30 of 20,000 partitions: the local task alone, the sensor after it, both
stages, and the same statement with the list of partitions by hand in a session of its own. Tables
are in a Hive Metastore. Results go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import Machine, noise, quiet_session
from benchmarks.report import RESULTS, about, table_row
from benchmarks.task_process import BY_HAND, LOCAL_TASK, SENSOR, WHOLE
from benchmarks.warehouse import DATABASE, FOLDER, Servers, build, servers, session_conf

MATCHING = 30
WARM = 5


def main() -> None:
    """Runs all tasks in turn and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5, help="of the processes")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--results", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    with servers(chosen.folder) as running, tempfile.TemporaryDirectory() as home:
        conf = session_conf(running.metastore.uri, running.metastore.warehouse)
        join = f"{DATABASE}.fact_{chosen.partitions} f JOIN {DATABASE}.dim_{chosen.partitions} d"
        sql = f"SELECT sum(f.amount) FROM {join} ON f.ds = d.ds WHERE d.rank < {MATCHING}"
        with quiet_session("tasks", conf) as session:
            build(session, running, chosen.partitions)
            text = f"SELECT ds FROM {DATABASE}.dim_{chosen.partitions} WHERE rank < {MATCHING}"
            days = sorted(row.ds for row in session.sql(text).collect())
        environment = _environment(running, Path(home))
        runs = []
        for _ in range(chosen.repeats):
            for order in _orders(sql, days, conf, environment):
                costs = _run(order, environment)
                told = {name: order[name] for name in ("task", "by")}
                runs.append({**told, "costs": costs, "noise": noise(), "load": os.getloadavg()[0]})
                print(f"{order['task']:<18}{order['by']:<8}", *map(_brief, costs), flush=True)
    document = {
        "machine": asdict(Machine()),
        "partitions": chosen.partitions,
        "matching": MATCHING,
        "runs": runs,
    }
    chosen.results.mkdir(parents=True, exist_ok=True)
    (chosen.results / "tasks.json").write_text(json.dumps(document, indent=1))
    (chosen.results / "tasks.md").write_text("\n".join(report(document)) + "\n")


def _orders(
    sql: str, days: Sequence[str], conf: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    base = {"sql": sql, "conf": dict(conf), "repeats": 1}
    yield {**base, "task": LOCAL_TASK, "by": "worker", "expected": "worker"}
    yield {**base, "task": LOCAL_TASK, "by": "spark", "expected": "spark"}
    with tempfile.TemporaryDirectory() as folder:
        output = _output(sql, folder, environment)
        yield {**base, "task": SENSOR, "by": "worker", "output": output}
    listed = ", ".join(f"'{day}'" for day in days)
    literal = f"{sql} AND f.ds IN ({listed})"
    yield {**base, "task": WHOLE, "by": "auto", "expected": "worker"}
    yield {**base, "task": WHOLE, "by": "spark", "expected": "spark"}
    yield {**base, "task": BY_HAND, "by": "", "sql": literal, "listed": len(days)}
    warm = {"repeats": 1 + WARM}
    for by in ("auto", "spark"):  # which of the two reads the keys is not certain once it is warm
        yield {**base, **warm, "task": WHOLE, "by": by, "expected": None}


def _environment(running: Servers, home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__HIVE_OPT__WAREHOUSE": str(home / "warehouse"),
        "AIRFLOW_CONN_METASTORE": running.metastore.connection,
    }


def _output(sql: str, folder: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The output of a local task, for the sensor."""
    script = (
        "import json, sys; from benchmarks.task_process import _context;"
        "from airflow_hive_opt.operators.local_task import LocalTaskOperator;"
        "task = LocalTaskOperator(task_id='l', sql=sys.argv[1], descriptor_path=sys.argv[2],"
        " metastore_conn_id='metastore', local_task='worker');"
        "print(json.dumps(task.execute(_context('l'))))"
    )
    command = [sys.executable, "-c", script, sql, folder]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=environment)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _run(order: Mapping[str, Any], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.task_process"]
    done = subprocess.run(
        command,
        input=json.dumps(order),
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def _brief(cost: Mapping[str, Any]) -> str:
    return f"{cost['seconds']:.2f} s ({cost['cpu_seconds']:.2f} of CPU time)"


def report(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of ``tasks.md``."""
    yield "# Tasks with the local task in the worker, and with Spark's"
    yield ""
    yield (
        f"{document['matching']} of {document['partitions']:,} partitions. Each task is in a "
        "process that has just started and that has imported Airflow. The fastest run counts, "
        "because other work ran on the machine; CPU time is that of the process and of those "
        "below it. Memory is the largest resident size of the process without Spark."
    )
    yield ""
    yield table_row(("task", "local task", "seconds", "CPU seconds", "MB", "runs"))
    yield table_row(("---", "---", *["---:"] * 4))
    runs = document["runs"]
    for task, by in dict.fromkeys((run["task"], run["by"]) for run in runs):
        own = [run["costs"][0] for run in runs if (run["task"], run["by"]) == (task, by)]
        seconds, cpu = (min(cost[name] for cost in own) for name in ("seconds", "cpu_seconds"))
        peak = f"{max(cost['peak'] for cost in own) / 1e6:,.0f}" if by == "worker" else ""
        yield table_row((task, by, f"{seconds:.2f}", f"{cpu:.2f}", peak, str(len(own))))
    yield ""
    for by in ("auto", "spark"):
        own = [cost for run in runs if run["by"] == by for cost in run["costs"][1:]]
        if own:
            seconds, cpu = (
                median(cost[name] for cost in own) for name in ("seconds", "cpu_seconds")
            )
            yield (
                f"Both stages again in the same process, local task `{by}`: "
                f"median {seconds:.2f} s, {cpu:.2f} s of CPU time, of {len(own)}."
            )
            yield ""
    yield from about(document["machine"], [run["noise"] for run in runs])
    loads = [run["load"] for run in runs]
    yield f"- load: {min(loads):.1f} to {max(loads):.1f}"


if __name__ == "__main__":
    main()
