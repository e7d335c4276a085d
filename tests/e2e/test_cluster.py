"""The operators on a real standalone cluster, submitted as the Spark provider submits."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from signal import SIGKILL
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferred,
)

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.attempts import safe_part
from tests.operators.test_application_trigger import event_of, killed
from tests.services.standalone import standalone
from tests.services.submit_variables import put_back

SQL = """SELECT r.name, sum(s.amount) AS amount FROM shop.sales s
JOIN shop.days d ON s.ds = d.ds JOIN shop.regions r ON s.region = r.code
WHERE d.week = {{ params.week }} AND r.name = 'North' GROUP BY r.name"""
# a join that keeps every core busy for a while
SLOW = """SELECT count(*) AS n FROM shop.sales s
JOIN shop.days d ON s.ds = d.ds AND d.week = 2
CROSS JOIN (SELECT id FROM range(0, {{ params.rows }}, 1, 8)) r WHERE hash(s.item, r.id) <> 7"""
# whose answer is known: every row fulfils the condition
COUNTED = SLOW.replace("hash(s.item, r.id) <> 7", "pmod(hash(s.item, r.id), 7) >= 0")
FOREVER = 10**11


@pytest.fixture(autouse=True)
def connection(cluster, monkeypatch):
    document = {"conn_type": "spark", "host": cluster.url}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(document))
    put_back(monkeypatch)


def context(task_id="t", **params):
    instance = SimpleNamespace(
        dag_id="d", run_id="r:1", task_id=task_id, map_index=-1, try_number=1, max_tries=0
    )
    instance.stats_tags, instance.xcom_push = {}, lambda key, value: None
    return {"ti": instance, "params": {"week": 2, **params}}


def made(cls, warehouse, tmp_path, found, **options):
    operator = cls(
        task_id="t",
        conn_id="cluster",
        conf=warehouse,
        descriptor_path=str(tmp_path),
        executor_memory="512m",
        **{"sql": SQL, **options},
    )
    operator.render_template_fields(found)
    return operator


def run(cls, warehouse, tmp_path, found=None, **options):
    found = found or context()
    return made(cls, warehouse, tmp_path, found, **options).execute(found)


def wait_until(condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


def mid_join(cluster, tmp_path):
    """Waits until the partition list is there and the join runs.

    The worker may have written the list before it submits the application.
    """
    wait_until(lambda: list(tmp_path.rglob("1.json")))
    wait_until(lambda: cluster.state()["activeapps"])
    time.sleep(10)  # its executors register
    assert len(cluster.state()["activeapps"]) == 1


def executor_logs(work):
    return [path.read_text() for path in work.rglob("stderr")]


def test_one_task_prunes_and_joins_on_a_standalone_cluster(warehouse, cluster, tmp_path, capsys):
    summary = run(MapJoinPruneOperator, warehouse, tmp_path)
    assert (summary["kept"], summary["total"], summary["reason"]) == (7, 120, "PRUNED")
    assert summary["uri"] == str(tmp_path / "d" / safe_part("r:1") / "t" / "-1" / "1.json")
    log = capsys.readouterr().out
    assert "North\t189" in log
    assert f"application {summary['application_id']}" in log  # the driver's own words
    finished = {app["id"]: app["state"] for app in cluster.state()["completedapps"]}
    assert finished[summary["application_id"]] == "FINISHED"


def test_two_tasks_prune_and_join_and_gates_close_on_a_standalone_cluster(warehouse, tmp_path):
    pruned = run(LocalTaskOperator, warehouse, tmp_path)
    joined = run(MapJoinOperator, warehouse, tmp_path, context("join"), descriptor=pruned)
    assert joined["uri"] == pruned["uri"]
    assert joined["work"]["map join"]["partitions_fetched"] == 7
    with pytest.raises(AirflowFailException, match="max_partitions is 3"):
        run(LocalTaskOperator, warehouse, tmp_path, max_partitions=3)
    with pytest.raises(AirflowSkipException, match="no partition of s"):
        run(LocalTaskOperator, warehouse, tmp_path, context(week=99), on_empty="skip")


def test_wrong_statements_fail_with_one_message(warehouse, tmp_path):
    with pytest.raises(AirflowFailException, match=r"^line 1, column 8: there is no column nope"):
        run(MapJoinPruneOperator, warehouse, tmp_path, sql="SELECT nope FROM shop.sales")
    division = "SELECT 1 / (item - item) FROM shop.sales"
    with pytest.raises(AirflowException, match=r"^\[DIVIDE_BY_ZERO\]"):
        run(
            MapJoinPruneOperator,
            warehouse,
            tmp_path,
            sql=division,
        )


def test_a_statement_that_the_planner_can_not_read_runs_unchanged(warehouse, tmp_path, capsys):
    piped = "FROM shop.sales |> AGGREGATE count(*) AS n |> SELECT n * 2 AS twice"
    summary = run(MapJoinPruneOperator, warehouse, tmp_path, sql=piped)
    assert (summary["reason"], summary["kept"]) == ("PASSED_THROUGH", 0)
    log = capsys.readouterr().out
    assert re.search(r"\s2400\s", log)  # 20 items on 60 days, twice
    assert "the statement is written with pipes" in log


def test_spark_refuses_cluster_mode_for_python_on_a_standalone_cluster(cluster, tmp_path):
    """Why the operator refuses it: should Spark learn it one day, this test says so."""
    (tmp_path / "main.py").write_text("print('ran')")
    submit = Path(sys.executable).with_name("spark-submit")
    arguments = ["--master", cluster.url, "--deploy-mode", "cluster", str(tmp_path / "main.py")]
    environment = {**os.environ, "PATH": f"{submit.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [submit, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode != 0
    assert "not supported for python applications on standalone clusters" in done.stderr


@pytest.fixture
def cluster_mode(cluster, monkeypatch):
    """The connection's drivers run on the cluster's workers; gives what they need."""
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", cluster.cluster_mode)
    return {"driver_memory": "512m", "deferrable": True}


def deferred(warehouse, tmp_path, found, **options):
    conf = {**warehouse, "spark.pyspark.python": sys.executable}
    operator = made(MapJoinPruneOperator, conf, tmp_path, found, **options)
    with pytest.raises(TaskDeferred) as raised:
        operator.execute(found)
    raised.value.trigger.poll_interval = 0.5
    return operator, raised.value


def test_a_deferred_task_prunes_and_joins_in_cluster_mode(
    warehouse, cluster, cluster_mode, tmp_path, capsys
):
    found = context()
    operator, wait = deferred(warehouse, tmp_path, found, **cluster_mode)
    driver = wait.trigger.application_id
    event = event_of(wait.trigger)
    assert event == {"how": "succeeded", "message": f"{driver}: FINISHED"}
    summary = operator.resume(found, event=event, **wait.kwargs)
    assert (summary["kept"], summary["total"], summary["reason"]) == (7, 120, "PRUNED")
    assert "North\t189" in capsys.readouterr().out
    state = cluster.state()
    finished = {app["id"]: app["state"] for app in state["completedapps"]}
    assert finished[summary["application_id"]] == "FINISHED"
    assert {each["id"]: each["state"] for each in state["completeddrivers"]}[driver] == "FINISHED"


def test_a_stop_of_a_deferred_task_ends_its_driver(warehouse, cluster, cluster_mode, tmp_path):
    found = context(rows=FOREVER)
    _, wait = deferred(warehouse, tmp_path, found, sql=SLOW, **cluster_mode)
    wait_until(lambda: list(tmp_path.rglob("1.begun.json")))
    killed(wait.trigger, "failed")
    state = cluster.state()
    assert state["activedrivers"] == []
    assert {each["id"]: each["state"] for each in state["completeddrivers"]}[
        wait.trigger.application_id
    ] == "KILLED"
    wait_until(lambda: not cluster.state()["activeapps"], seconds=10)


def test_a_join_survives_the_death_of_a_worker(warehouse, tmp_path, monkeypatch, capsys):
    rows = 3 * 10**6
    found = context(rows=rows)
    folder = tmp_path / "cluster"
    with standalone(folder) as cluster:
        document = {"conn_type": "spark", "host": cluster.url}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(document))
        operator = made(MapJoinPruneOperator, warehouse, tmp_path / "runs", found, sql=COUNTED)
        summaries = []
        task = threading.Thread(target=lambda: summaries.append(operator.execute(found)))
        task.start()
        # only an executor that has tasks is missed
        wait_until(lambda: any("Running task" in log for log in executor_logs(folder / "work-1")))
        os.killpg(cluster.workers[0].pid, SIGKILL)  # with its executor, in the worker's group
        task.join(timeout=480)
        assert [each["kept"] for each in summaries] == [14]  # seven days in two regions
    log = capsys.readouterr().out
    assert "Lost executor" in log  # the join had not ended before
    assert str(7 * 20 * rows) in log


def test_stopping_the_task_stops_the_application(warehouse, cluster, tmp_path):
    found = context(rows=FOREVER)
    operator = made(MapJoinPruneOperator, warehouse, tmp_path, found, sql=SLOW)
    raised = []

    def execute():
        try:
            operator.execute(found)
        except AirflowException as error:
            raised.append(str(error))

    task = threading.Thread(target=execute)
    task.start()
    mid_join(cluster, tmp_path)
    operator.on_kill()
    task.join(timeout=60)
    assert not task.is_alive()
    assert raised
    wait_until(lambda: not cluster.state()["activeapps"])


def test_a_killed_task_leaves_no_application(warehouse, cluster, tmp_path):
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from tests.e2e.test_cluster import FOREVER, SLOW, MapJoinPruneOperator, context, run\n"
        "run(MapJoinPruneOperator, json.loads(sys.argv[1]), Path(sys.argv[2]), "
        "context(rows=FOREVER), sql=SLOW)\n"
    )
    command = [sys.executable, "-c", script, json.dumps(warehouse), str(tmp_path)]
    with (tmp_path / "log").open("w") as log:
        task = subprocess.Popen(command, stdout=log, stderr=log, cwd=Path(__file__).parents[2])
    mid_join(cluster, tmp_path)
    task.kill()
    task.wait()
    wait_until(lambda: not cluster.state()["activeapps"])
    assert not list(tmp_path.rglob("*.outcome.json"))
