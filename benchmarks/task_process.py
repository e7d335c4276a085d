"""The body of one Airflow task in a process of its own; an order comes from standard input.

Airflow's own modules are imported before the clock starts: its task runner, and its Spark operator,
which DAG files import. What the task imports besides counts.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from benchmarks.worker_process import cost

LOCAL_TASK, SENSOR, WHOLE, BY_HAND = "local task", "sensor", "whole form", "literals by hand"


def main() -> None:
    """Runs the order, and prints what each run has cost; all but the first are warm."""
    import airflow.providers.apache.spark.operators.spark_submit
    import airflow.sdk.execution_time.task_runner  # noqa: F401

    order = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        if order["task"] == BY_HAND:
            costs = _by_hand(order)
        else:
            costs = _costs(order["repeats"], lambda: _task(order, folder))
    print(json.dumps(costs))


def _costs(repeats: int, run: Callable[[], Any]) -> list[dict[str, Any]]:
    costs = []
    for _ in range(repeats):
        before, began = cost(time.monotonic()), time.monotonic()
        kept = run()
        found = cost(began)
        found["cpu_seconds"] -= before["cpu_seconds"]
        costs.append({**found, "kept": kept})
    return costs


def _task(order: dict[str, Any], folder: str) -> int:
    from airflow_hive_opt.operators.local_task import LocalTaskOperator
    from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

    given = {"metastore_conn_id": "metastore", "descriptor_path": folder, "sql": order["sql"]}
    if order["task"] == SENSOR:
        from airflow_hive_opt.sensors.required_partitions import RequiredPartitionsSensor

        sensor = RequiredPartitionsSensor(task_id="sensor", descriptor=order["output"], **given)
        return int(sensor.poke(_context("sensor")).xcom_value["required"])
    kind = LocalTaskOperator if order["task"] == LOCAL_TASK else MapJoinPruneOperator
    settings = {"conf": order["conf"], "local_task": order["by"]}
    summary = kind(task_id="t", **given, **settings).execute(_context("t"))
    assert order["expected"] in (None, summary["local_task"]), summary["local_task"]
    return int(summary["kept"])


def _by_hand(order: dict[str, Any]) -> list[dict[str, Any]]:
    """A session, the statement with a list of partitions, and the end of the session."""

    def run() -> int:
        from airflow_hive_opt.spark.session.session import spark_session

        with spark_session("by hand", order["conf"]) as session:
            session.sql(order["sql"]).collect()
        return int(order["listed"])

    return _costs(order["repeats"], run)


_TRIES = iter(range(1, 1_000))


def _context(task_id: str) -> dict[str, Any]:
    instance = SimpleNamespace(
        dag_id="d", run_id="r", task_id=task_id, map_index=-1, try_number=next(_TRIES)
    )
    instance.xcom_push = lambda *_, **__: None
    return {"ti": instance, "params": {}}


if __name__ == "__main__":
    main()
