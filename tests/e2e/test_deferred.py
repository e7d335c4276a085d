"""Tasks that wait in Airflow's triggerer for drivers on a cluster, and what happens when parts die.

Each test compares the table with what plain Spark writes, and counts the drivers.
"""

from __future__ import annotations

import os
from pathlib import Path
from signal import SIGKILL
from urllib.parse import quote

import pytest

from tests.services.airflow import wait_for

DAG_ID = "deferred_sales"
ENDLESS = 10_000  # times as many rows


@pytest.fixture
def table(plain, request):
    """A table with one old row."""
    name = f"deferred_{request.node.name.removeprefix('test_')}"
    plain.session.sql(f"CREATE TABLE {name} (d_moy INT, n BIGINT) STORED AS PARQUET")
    plain.session.sql(f"INSERT INTO {name} VALUES (0, 0)")
    return name


class Run:
    """A run of the DAG, and what it has started on the cluster since."""

    def __init__(self, airflow, cluster, **params):
        self.airflow, self.cluster = airflow, cluster
        self._before, self._begun = set(self._drivers()), self._begun_now()
        self.id = airflow.trigger(DAG_ID, **params)

    def _drivers(self):
        state = self.cluster.state()
        return {
            each["id"]: each["state"]
            for which in ("active", "completed")
            for each in state[f"{which}drivers"]
        }

    @property
    def drivers(self):
        """The states of the run's drivers, by ID."""
        return {id_: state for id_, state in self._drivers().items() if id_ not in self._before}

    @property
    def task(self):
        return self.airflow.task(DAG_ID, self.id, "join")

    def is_in(self, state):
        wait_for(lambda: self.task["state"] == state or None)

    def has_begun(self):
        """Waits until the driver of the first attempt has begun its statement."""
        wait_for(lambda: self._begun_now() - self._begun or None)

    def _begun_now(self):
        return set(self.airflow.descriptors.glob(f"{DAG_ID}/*/join/-1/1.begun.json"))

    def ended(self):
        return self.airflow.ended(DAG_ID, self.id, seconds=400)

    def driver_process(self):
        """The process ID of the driver's JVM."""
        (found,) = (
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if all(word in _read(path) for word in (b"DriverWrapper", self.task_part))
        )
        return found

    @property
    def task_part(self):
        return f"{DAG_ID}.join {self.id}".encode()


def _read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


def expected(plain, rows):
    """The old row, and what one run of the statement adds."""
    added = plain.rows(
        f"SELECT d_moy, count(*) FROM store_sales, date_dim, range({rows}) WHERE d_moy = 2 "
        "AND ss_sold_date_sk = d_date_sk AND hash(ss_item_sk, id) % 1000 = 7 GROUP BY d_moy"
    )
    assert len(added) == 1
    return [(0, 0), *added]


def test_triggerer_and_worker_die(airflow, cluster, plain, table):
    rows = 500_000
    run = Run(airflow, cluster, table=table, rows=rows, dies=True)
    run.is_in("deferred")
    assert airflow.ask("/api/v2/pools/default_pool")["deferred_slots"] == 1
    wait_for(lambda: not Path(f"/proc/{run.task['pid']}").exists() or None)
    airflow.kill("airflow-triggerer")
    airflow.start("airflow-triggerer")
    assert run.ended() == "success"
    assert run.task["try_number"] == 2  # the worker was killed as it went on after the wait
    assert list(run.drivers.values()) == ["FINISHED"]
    assert plain.table(table) == expected(plain, rows)


def test_a_driver_is_killed(airflow, cluster, plain, table):
    rows = 100_000
    run = Run(airflow, cluster, table=table, rows=rows, first=ENDLESS)
    run.is_in("deferred")
    run.has_begun()
    os.kill(run.driver_process(), SIGKILL)
    assert run.ended() == "success"
    assert run.task["try_number"] == 2
    assert sorted(run.drivers.values()) == ["FAILED", "FINISHED"]
    assert plain.table(table) == expected(plain, rows)


def test_a_user_stops_the_task(airflow, cluster, plain, table):
    run = Run(airflow, cluster, table=table, rows=100_000, first=ENDLESS)
    run.is_in("deferred")
    run.has_begun()
    at = f"/api/v2/dags/{DAG_ID}/dagRuns/{quote(run.id)}/taskInstances/join"
    airflow.ask(at, {"new_state": "failed"}, method="PATCH")
    wait_for(lambda: list(run.drivers.values()) == ["KILLED"] or None, seconds=30)
    assert run.ended() == "failed"
    wait_for(lambda: not cluster.state()["activeapps"] or None, seconds=15)
    assert plain.table(table) == [(0, 0)]


def test_a_user_clears_the_task(airflow, cluster, plain, table):
    rows = 100_000
    run = Run(airflow, cluster, table=table, rows=rows, first=ENDLESS)
    run.is_in("deferred")
    run.has_begun()
    body = {"dry_run": False, "dag_run_id": run.id, "task_ids": ["join"], "only_failed": False}
    airflow.ask(f"/api/v2/dags/{DAG_ID}/clearTaskInstances", body)
    assert run.ended() == "success"
    assert sorted(run.drivers.values()) == ["FINISHED", "KILLED"]
    assert plain.table(table) == expected(plain, rows)
