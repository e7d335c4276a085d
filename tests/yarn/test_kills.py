"""Applications on YARN that are killed, and tasks that die while their application runs."""

from __future__ import annotations

import json
import os
from signal import SIGKILL

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import TaskDeferred

from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.operators.test_application_trigger import event_of, killed
from tests.services.yarn import yarn
from tests.yarn.tasks import (
    FOREVER,
    ITEMS,
    MASTER,
    Started,
    Store,
    containers,
    context,
    made,
    wait_until,
    worker,
)

ENDLESS = FOREVER.format(rows=10**11)


def content(session) -> list[tuple[int, int]]:
    session.catalog.refreshTable("shop.result")
    return sorted(map(tuple, session.sql("SELECT * FROM shop.result").collect()))


def running(cluster, before: int) -> str:
    """The ID of the application that was submitted, once its executor runs."""
    wait_until(lambda: len(cluster.applications()) > before)
    id_ = cluster.applications()[0]["id"]
    wait_until(lambda: cluster.application(id_)["runningContainers"] > 1)
    return id_


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
    for each in containers(cluster, MASTER):
        each.kill()
    task.wait()
    assert "it wrote no outcome" in task.message
    assert cluster.application(id_)["finalStatus"] == "FAILED"
    assert len(cluster.applications()) == before + 1
    assert content(session) == []


def test_stopping_the_task_stops_the_application(cluster, connect, session, conf, result, tmp_path):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    operator = made(MapJoinPruneOperator, f"INSERT INTO {result} {ENDLESS}", tmp_path, conf)
    task = Started(operator, context())
    id_ = running(cluster, before)
    operator.on_kill()
    task.wait()
    wait_until(lambda: cluster.application(id_)["state"] == "KILLED")
    assert content(session) == []


def test_a_retry_follows_the_application_of_a_task_that_was_killed(
    cluster, connect, session, conf, result, tmp_path
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {FOREVER.format(rows=2 * 10**8)}"
    options = {"durable": True, "yarn_track_via_rm_api": True}
    first = worker(tmp_path, sql, conf, **options)
    id_ = running(cluster, before)
    kept = tmp_path / "store.json"
    wait_until(lambda: kept.exists() and id_ in kept.read_text())
    os.killpg(first.pid, SIGKILL)
    first.wait()
    assert cluster.application(id_)["state"] == "RUNNING"
    store = Store(json.loads(kept.read_text()))
    again = made(MapJoinPruneOperator, sql, tmp_path, conf, **options)
    summary = again.execute(context(store, try_number=2))
    assert summary["application_id"] == id_
    assert len(cluster.applications()) == before + 1
    assert content(session) == [(6 * 2 * 10**8, 0)]


def deferred(operator, found):
    """Runs the task until it is deferred."""
    with pytest.raises(TaskDeferred) as raised:
        operator.execute(found)
    raised.value.trigger.poll_interval = 0.5
    return raised.value


def test_a_deferred_task_writes_once(cluster, connect, session, conf, result, tmp_path):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {ITEMS}"
    operator = made(MapJoinPruneOperator, sql, tmp_path, conf, deferrable=True)
    wait = deferred(operator, found := context())
    id_ = wait.trigger.application_id
    event = event_of(wait.trigger)
    assert event == {"how": "succeeded", "message": f"{id_}: FINISHED"}
    summary = operator.resume(found, event=event, **wait.kwargs)
    assert (summary["application_id"], summary["reason"]) == (id_, "PRUNED")
    again = made(MapJoinPruneOperator, sql, tmp_path, conf, deferrable=True)
    found["ti"].try_number = 2  # the worker has died after the wait
    assert again.execute(found)["application_id"] == id_
    assert len(cluster.applications()) == before + 1
    assert content(session) == sorted(map(tuple, session.sql(ITEMS).collect()))


def test_a_stop_of_a_deferred_task_stops_the_application(
    cluster, connect, session, conf, result, tmp_path
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {ENDLESS}"
    wait = deferred(made(MapJoinPruneOperator, sql, tmp_path, conf, deferrable=True), context())
    id_ = running(cluster, before)
    killed(wait.trigger, "failed")
    assert cluster.application(id_)["state"] == "KILLED"
    assert content(session) == []


def test_a_cleared_task_stops_the_application_before_it(
    cluster, connect, session, conf, result, tmp_path
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    found = context()
    options = {"folder": tmp_path, "conf": conf, "deferrable": True}
    deferred(made(MapJoinPruneOperator, f"INSERT INTO {result} {ENDLESS}", **options), found)
    first = running(cluster, before)
    found["ti"].try_number, found["ti"].max_tries = 2, 2
    operator = made(MapJoinPruneOperator, f"INSERT INTO {result} {ITEMS}", **options)
    wait = deferred(operator, found)
    assert cluster.application(first)["state"] == "KILLED"
    operator.resume(found, event=event_of(wait.trigger), **wait.kwargs)
    assert len(cluster.applications()) == before + 2
    assert content(session) == sorted(map(tuple, session.sql(ITEMS).collect()))


def test_a_retry_finds_an_application_whose_id_the_worker_never_knew(
    cluster, connect, session, conf, result, tmp_path, monkeypatch
):
    connect(cluster, "cluster")
    before = len(cluster.applications())
    sql = f"INSERT INTO {result} {FOREVER.format(rows=3 * 10**7)}"
    submit = SparkSubmitHook.submit

    def and_die(hook, *given, **named):
        submit(hook, *given, **named)
        raise SystemExit

    found = context()
    with monkeypatch.context() as patch:
        patch.setattr(SparkSubmitHook, "submit", and_die)
        with pytest.raises(SystemExit):
            made(MapJoinPruneOperator, sql, tmp_path, conf, deferrable=True).execute(found)
    wait_until(lambda: list(tmp_path.rglob("1.begun.json")))
    found["ti"].try_number = 2
    operator = made(MapJoinPruneOperator, sql, tmp_path, conf, deferrable=True)
    wait = deferred(operator, found)
    assert wait.trigger.application_id == cluster.applications()[0]["id"]
    operator.resume(found, event=event_of(wait.trigger), **wait.kwargs)
    assert len(cluster.applications()) == before + 1
    assert content(session) == [(6 * 3 * 10**7, 0)]


@pytest.mark.slow
def test_a_node_manager_that_dies(connect, session, metastore_service, result, tmp_path):
    with yarn(tmp_path / "cluster") as own:
        conf = {**metastore_service.spark_conf(), **own.spark_conf()}
        connect(own, "cluster")
        sql = f"INSERT INTO {result} {ENDLESS}"
        task = Started(made(MapJoinPruneOperator, sql, tmp_path / "runs", conf), context())
        id_ = running(own, 0)
        own.kill_node()
        wait_until(lambda: own.application(id_)["finalStatus"] == "FAILED")
        task.wait()
        assert "it wrote no outcome" in task.message
    assert content(session) == []
