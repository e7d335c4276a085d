"""Sensors that wait in the triggerer, and go on when what they wait for has come."""

from __future__ import annotations

import json
import re

from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor, now, write
from tests.services.airflow import wait_for


def test_sensors_are_deferred_until_missing_partitions_have_come(airflow, plain, tmp_path):
    for statement in (
        "CREATE DATABASE late",
        "CREATE TABLE late.days STORED AS PARQUET AS SELECT * FROM "
        "VALUES ('2026-01-01'), ('2026-01-02'), ('2026-01-03') AS d(ds)",
        "CREATE TABLE late.sales (item INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        "INSERT INTO late.sales VALUES (1, '2026-01-01'), (2, '2026-01-02'), (9, '2026-01-09')",
        "CREATE TABLE late.result (item INT, ds STRING) STORED AS PARQUET",
    ):
        plain.session.sql(statement)
    uri = tmp_path / "brought" / "1.json"
    run_id = airflow.trigger("waiting", uri=str(uri))

    def state(task_id):
        return airflow.task("waiting", run_id, task_id)["state"]

    def both_are(wanted):
        wait_for(lambda: {state("partitions"), state("descriptor")} == {wanted} or None)

    both_are("deferred")
    assert state("join") is None
    plain.session.sql("INSERT INTO late.sales PARTITION (ds = '2026-01-03') VALUES (3)")
    write(Descriptor("q", now(), (), ()), UPath(uri))
    assert airflow.ended("waiting", run_id) == "success"
    assert state("partitions") == state("descriptor") == "success"
    assert airflow.summary("waiting", run_id, "partitions") == {"required": 3}
    assert airflow.summary("waiting", run_id, "join")["kept"] == 3
    assert plain.table("late.result") == [(n, f"2026-01-0{n}") for n in (1, 2, 3)]
    for task_id, last in (("partitions", None), ("join", "kept 3 of 4 partitions")):
        lines = log_of(airflow, task_id)
        assert {line["level"] for line in lines} <= {"debug", "info", "warning"}
        assert not [line for line in lines if "TTransportException" in line["event"]]
        own = [line for line in lines if not AIRFLOWS_OWN.match(line["logger"])]
        assert 2 < len(own) <= 20
        assert last is None or own[-1]["event"].startswith(last)


AIRFLOWS_OWN = re.compile(r"task$|airflow\.dag_processing\.")


def log_of(airflow, task_id):
    (path,) = airflow.logs.glob(f"dag_id=waiting/run_id=*/task_id={task_id}/attempt=1.log")
    return [{"logger": "", **json.loads(line)} for line in path.read_text().splitlines()]
