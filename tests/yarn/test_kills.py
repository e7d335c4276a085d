"""Applications on YARN that are killed, and tasks that die while their application runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from signal import SIGKILL

import psutil
import pytest
from airflow.providers.common.compat.sdk import AirflowException

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.services.yarn import yarn
from tests.yarn.tasks import FOREVER, Store, context, made, wait_until

ENDLESS = FOREVER.format(rows=10**11)


def content(session) -> list[tuple[int, int]]:
    session.catalog.refreshTable("shop.result")
    return sorted(map(tuple, session.sql("SELECT * FROM shop.result").collect()))


class Started:
    """A task in a thread, and the message with which it failed."""

    def __init__(self, operator, found) -> None:
        self.message = self.summary = None
        self._operator, self._found = operator, found
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.summary = self._operator.execute(self._found)
        except AirflowException as error:
            self.message = str(error)

    def wait(self, seconds: float = 120) -> None:
        self._thread.join(timeout=seconds)
        assert not self._thread.is_alive()


def running(cluster, before: int) -> str:
    """The ID of the application that was submitted, once its executor runs."""
    wait_until(lambda: len(cluster.applications()) > before)
    id_ = cluster.applications()[0]["id"]
    wait_until(lambda: cluster.application(id_)["runningContainers"] > 1)
    return id_


def processes(cluster) -> list[psutil.Process]:
    """The JVMs of application masters, in which drivers run, and of executors."""
    below = psutil.Process(cluster.node.pid).children(recursive=True)
    return [
        each
        for each in below
        if "java" in each.name() and any("deploy.yarn" in word for word in each.cmdline())
    ]


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_kill_on_the_page_fails_the_task_and_writes_nothing(
    cluster, connect, session, conf, result, tmp_path, mode
):
    connect(cluster, mode)
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {ENDLESS}"
    task = Started(made(MapJoinPruneOperator, sql, tmp_path, conf), context())
    id_ = running(cluster, before)
    cluster.kill(id_)
    task.wait()
    assert "it wrote no outcome" in task.message
    assert cluster.application(id_)["state"] == "KILLED"
    assert len(cluster.applications()) == before + 1
    assert content(session) == []


def test_a_driver_that_dies_is_not_started_again_by_yarn(
    cluster, connect, session, conf, result, tmp_path
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {ENDLESS}"
    task = Started(made(MapJoinPruneOperator, sql, tmp_path, conf), context())
    id_ = running(cluster, before)
    for each in processes(cluster):
        if any("ApplicationMaster" in word for word in each.cmdline()):
            each.kill()
    task.wait()
    assert "it wrote no outcome" in task.message
    assert cluster.application(id_)["finalStatus"] == "FAILED"
    assert len(cluster.applications()) == before + 1
    assert content(session) == []


def test_stopping_the_task_stops_the_application(cluster, connect, session, conf, result, tmp_path):
    connect(cluster, "cluster", yarn_resourcemanager_webapp_address=cluster.address)
    before = len(cluster.applications())
    operator = made(MapJoinPruneOperator, f"INSERT INTO {result} {ENDLESS}", tmp_path, conf)
    task = Started(operator, context())
    id_ = running(cluster, before)
    operator.on_kill()
    task.wait()
    wait_until(lambda: cluster.application(id_)["state"] == "KILLED")
    assert content(session) == []


_TRY = """
import json, sys
from pathlib import Path
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.yarn.tasks import Store, context, made

folder, sql, conf = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

class Kept(Store):
    def set(self, key, value, **_):
        super().set(key, value)
        (folder / "store.json").write_text(json.dumps(self))

made(
    MapJoinPruneOperator, sql, folder, conf, durable=True, yarn_track_via_rm_api=True
).execute(context(Kept()))
"""


def test_a_retry_follows_the_application_of_a_task_that_was_killed(
    cluster, connect, session, conf, result, tmp_path
):
    address = cluster.address
    connect(cluster, "cluster", yarn_resourcemanager_webapp_address=address)
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {FOREVER.format(rows=2 * 10**8)}"
    with (tmp_path / "log").open("w") as log:
        first = subprocess.Popen(
            [sys.executable, "-c", _TRY, str(tmp_path), sql, json.dumps(conf)],
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
    id_ = running(cluster, before)
    kept = tmp_path / "store.json"
    wait_until(lambda: kept.exists() and id_ in kept.read_text())
    os.killpg(first.pid, SIGKILL)
    first.wait()
    assert cluster.application(id_)["state"] == "RUNNING"
    store = Store(json.loads(kept.read_text()))
    again = made(
        MapJoinPruneOperator, sql, tmp_path, conf, durable=True, yarn_track_via_rm_api=True
    )
    summary = again.execute(context(store, try_number=2))
    assert summary["application_id"] == id_
    assert len(cluster.applications()) == before + 1
    assert content(session) == [(6 * 2 * 10**8, 0)]


@pytest.mark.slow
def test_a_node_manager_that_dies(connect, session, metastore_service, result, tmp_path):
    with yarn(tmp_path / "cluster") as own:
        conf = {**metastore_service.spark_conf(), **own.spark_conf()}
        connect(own, "cluster")
        sql = f"INSERT INTO {result} {ENDLESS}"
        task = Started(made(MapJoinPruneOperator, sql, tmp_path / "runs", conf), context())
        id_ = running(own, 0)
        found = processes(own)
        own.node.kill()
        for process in found:  # what a node that is lost takes with it
            process.kill()
        wait_until(lambda: own.application(id_)["finalStatus"] == "FAILED")
        task.wait()
        assert "it wrote no outcome" in task.message
    assert content(session) == []
