"""Tasks that wait in Airflow's triggerer for statements on a Spark Connect server.

Each test looks at the table afterwards: it has the rows of one run of the statement.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from airflow_hive_opt.spark.session.connect import remote_session
from tests.services.airflow import wait_for
from tests.services.processes import HOST
from tests.services.spark_connect import spark_connect

DAG_ID = "deferred_connect"
ROWS = [0, 1, 2]
ENDLESS = 600_000


@pytest.fixture(scope="module")
def session(airflow, tmp_path_factory):
    """A session on the server that the DAG's connection names."""
    with (
        spark_connect(tmp_path_factory.mktemp("e2e") / "server") as server,
        remote_session(server.url, {}) as found,
    ):
        at = {"connection_id": "connect_e2e", "conn_type": "spark_connect", "host": HOST}
        airflow.ask("/api/v2/connections", {**at, "port": server.port, "login": "me"})
        first = f"/api/v2/dags?limit=1&dag_id_pattern={DAG_ID}"
        wait_for(lambda: airflow.ask(first)["dags"] or None)  # until the DAG has been read
        found.sql("CREATE DATABASE e2e")
        frame = found.range(10).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
        frame.coalesce(1).write.partitionBy("p").saveAsTable("e2e.fact")
        frame.coalesce(1).write.saveAsTable("e2e.keys")
        yield found


class Run:
    """A run of the DAG that writes to a table of its own."""

    def __init__(self, airflow, session, table, **params):
        self.airflow, self.session, self.table = airflow, session, f"e2e.{table}"
        session.sql(f"CREATE TABLE {self.table} (id INT, slept STRING) USING parquet")
        self.id = airflow.trigger(DAG_ID, table=self.table, **params)

    @property
    def task(self):
        return self.airflow.task(DAG_ID, self.id, "join")

    def is_in(self, state):
        wait_for(lambda: self.task["state"] == state or None)

    def worker_has_gone(self):
        """Waits for the end of the worker's process: it stops what nobody follows."""
        wait_for(lambda: not Path(f"/proc/{self.task['pid']}").exists() or None)

    def triggerer_says(self, words):
        """Waits until the triggerer has logged this of the run."""
        wait_for(lambda: any(words in path.read_text() for path in self._logs()) or None)

    def _logs(self):
        folder = f"dag_id={DAG_ID}/run_id={self.id}/task_id=join"
        return self.airflow.logs.glob(f"{folder}/*.trigger.*.log")

    def rows(self):
        self.session.sql(f"REFRESH TABLE {self.table}")
        return sorted(row.id for row in self.session.table(self.table).collect())

    def ended(self):
        return self.airflow.ended(DAG_ID, self.id, seconds=400)


def test_triggerer_and_worker_die(airflow, session):
    run = Run(airflow, session, "killed", slow=15_000, later=15_000, dies=True)
    run.triggerer_says("following the statement")
    assert airflow.ask("/api/v2/pools/default_pool")["deferred_slots"] == 1
    run.worker_has_gone()
    airflow.kill("airflow-triggerer")
    airflow.start("airflow-triggerer")
    assert run.ended() == "success"
    assert run.task["try_number"] == 2  # the worker was killed as it went on after the wait
    assert run.rows() == ROWS


def test_a_user_stops_the_task_and_clears_it(airflow, session):
    run = Run(airflow, session, "stopped", slow=ENDLESS)
    run.triggerer_says("following the statement")
    run.worker_has_gone()
    at = f"/api/v2/dags/{DAG_ID}/dagRuns/{quote(run.id)}/taskInstances/join"
    airflow.ask(at, {"new_state": "failed"}, method="PATCH")
    run.triggerer_says("stopping the statement")
    # the server has two cores: an endless statement would hold both
    assert session.range(0, 4, 1, 4).selectExpr("sum(id)").first() == (6,)
    assert run.ended() == "failed"
    assert run.rows() == []
    body = {"dry_run": False, "dag_run_id": run.id, "task_ids": ["join"], "only_failed": False}
    airflow.ask(f"/api/v2/dags/{DAG_ID}/clearTaskInstances", body)
    run.is_in("success")
    assert run.rows() == ROWS
