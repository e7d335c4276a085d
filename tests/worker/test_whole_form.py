"""Both stages in one task: who reads the keys, and what gates stop before Spark has anything to do.

The Spark of this process is warm. A test that needs a cold one says how long a start takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    task,
)
from upath import UPath

from airflow_hive_opt.documents.index_trial import IndexTrial
from airflow_hive_opt.documents.job import Stages, read_job, write_outcome
from airflow_hive_opt.documents.report import read_report
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import embedded, worker
from airflow_hive_opt.spark.application import handed_over
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session import session as sessions
from airflow_hive_opt.statement.template import template_digest
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup
from tests.services.java_options import SHORT_LIVED
from tests.worker.tasks import descriptor_of, hand_over

OF_KEYS = "SELECT f.id, f.p FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p AND k.id < 3"
NO_KEYS = OF_KEYS.replace("k.id < 3", "k.id < 0")
NOT_PRUNED = "SELECT f.id FROM worker_it.fact f LEFT JOIN worker_it.keys k ON f.p = k.p"
UNANSWERED = OF_KEYS.replace("worker_it.keys", "worker_it.few")
WRITTEN = f"INSERT OVERWRITE TABLE worker_it.result {OF_KEYS}"


@pytest.fixture(scope="module", autouse=True)
def tables(session):
    for sql in (
        "CREATE TABLE worker_it.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)",
        "CREATE TABLE worker_it.keys (id INT, p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.keys SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)",
        "CREATE VIEW worker_it.few AS SELECT * FROM worker_it.keys",
        "CREATE TABLE worker_it.result (id INT, p INT) STORED AS PARQUET",
    ):
        session.sql(sql)


@pytest.fixture
def cold(monkeypatch):
    """Each start of Spark counts as a cold one."""
    monkeypatch.setattr(embedded, "_WARM", -1.0)


@pytest.fixture
def asked(monkeypatch):
    """The jobs that workers were asked for."""
    jobs = []
    found = worker._found

    def counted(job, *arguments):
        jobs.append(job)
        return found(job, *arguments)

    monkeypatch.setattr(worker, "_found", counted)
    return jobs


@pytest.fixture
def no_spark(monkeypatch):
    """The sessions of Spark that a task has asked for; it gets none."""
    asked = []

    def refused(*arguments):
        asked.append(arguments)
        raise AssertionError("a Spark is started")

    monkeypatch.setattr(sessions, "spark_session", refused)
    return asked


@pytest.fixture
def cluster(session, monkeypatch):
    """The jobs that were submitted; instead of spark-submit, this process's Spark runs them."""
    jobs = []

    def submit(hook, application="", **_):
        job = read_job(UPath(hook._build_spark_submit_command(application)[-1]))
        jobs.append(job)
        write_outcome(run_job(session, job), UPath(job.path))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", "host": "yarn"}))
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return jobs


def written(tasks):
    return tasks.rows("SELECT * FROM worker_it.result")


def test_the_worker_reads_the_keys_while_spark_starts(tasks, cold, asked):
    summary = tasks.both(WRITTEN)
    assert (summary["local_task"], summary["kept"], len(asked)) == ("worker", 3, 1)
    assert set(summary["seconds"]) == {"local task", "prelaunch", "map join", "report"}
    assert summary["work"]["local task"]["metastore_calls"] > 0
    assert summary["work"]["map join"]["partitions_fetched"] == 3
    assert written(tasks) == tasks.rows(OF_KEYS)
    report = json.loads(Path(summary["uri"]).with_name("1.report.json").read_text())
    assert report["summary"]["local_task"] == "worker"
    assert descriptor_of(summary).digest == summary["digest"]


def test_a_statement_that_is_left_as_it_is_has_no_local_task(tasks):
    """The worker has planned nothing and asked the metastore nothing, and Spark does neither."""
    trial = IndexTrial(template_digest(OF_KEYS), used=8.0, untouched=5.0, may_be_untouched=True)
    known = {"index_path": str(tasks.folder / "indexes"), "index_trial": trial}
    found = hand_over(tasks, OF_KEYS, stages=Stages.BOTH, **known)
    assert found.partitions_fetched == 12
    assert [each.reason for each in found.descriptor.decisions] == ["LEFT_TO_SPARK"]
    summary = found.outcome.summary
    assert summary["work"]["local task"]["metastore_calls"] == 0
    assert summary["index_trial"]["used"] == 8.0
    assert 0 < summary["index_trial"]["untouched"] != 5.0
    read = sorted(each["table"] for each in summary["reads"])
    assert read == ["worker_it.fact", "worker_it.keys"]
    report = read_report(UPath(summary["uri"]).with_name("2.report.json"))
    assert (report.summary, report.stages) == (summary, ())


_COLD = """
import json, sys
from types import SimpleNamespace
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator

sql, folder, options = sys.argv[1:]
task = MapJoinPruneOperator(
    task_id="t",
    sql=sql,
    descriptor_path=folder,
    metastore_conn_id="metastore",
    conf={"spark.driver.extraJavaOptions": options},
)
ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1, try_number=1)
ti.xcom_push = lambda key, value: None
print(json.dumps(task.execute({"ti": ti})))
"""


@pytest.mark.slow
def test_a_task_that_starts_its_own_spark_uses_the_workers_keys(tasks):
    arguments = [WRITTEN, str(tasks.folder), SHORT_LIVED]
    warehouse = {"AIRFLOW__HIVE_OPT__WAREHOUSE": str(tasks.folder / "warehouse")}
    done = subprocess.run(
        [sys.executable, "-c", _COLD, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **warehouse},
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["local_task"], summary["kept"]) == ("worker", 3)
    assert summary["work"]["map join"]["partitions_fetched"] == 3
    assert "reads the keys of the worker again" not in done.stdout + done.stderr
    assert written(tasks) == tasks.rows(OF_KEYS)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ("INSERT INTO worker_it.changing VALUES (1, 7)", 4),
        ("DROP TABLE worker_it.changing", None),
        # Spark truncates no external table, as which Hive 4 keeps each table that Spark makes
        ("INSERT OVERWRITE worker_it.changing SELECT * FROM worker_it.keys WHERE id < 0", 0),
    ],
    ids=["more rows", "dropped", "no rows"],
)
def test_keys_are_read_again_if_a_small_table_changes_while_spark_starts(
    tasks, cold, monkeypatch, caplog, change, kept
):
    tasks.write("CREATE TABLE worker_it.changing STORED AS PARQUET AS SELECT * FROM worker_it.keys")
    found = worker._found

    def changed(*given):
        answer = found(*given)
        tasks.write(change)
        return answer

    monkeypatch.setattr(worker, "_found", changed)
    sql = WRITTEN.replace("worker_it.keys", "worker_it.changing")
    try:
        if kept is None:
            with pytest.raises(AirflowException, match="worker_it.changing"):
                tasks.both(sql)
            return
        with caplog.at_level("INFO"):
            summary = tasks.both(sql)
        assert (summary["local_task"], summary["kept"]) == ("spark", kept)
        assert "worker_it.changing changed while Spark started" in caplog.text
        assert written(tasks) == tasks.rows(sql.partition("result ")[2])
    finally:
        tasks.write("DROP TABLE IF EXISTS worker_it.changing")


@pytest.mark.parametrize(
    ("oldest", "days", "looked_up"), [(60, [0, 1], False), (-1, [0, 1, 2], True)]
)
def test_only_an_older_partition_list_is_updated_when_spark_has_started(
    tasks, cold, monkeypatch, oldest, days, looked_up
):
    """A list that has just been made is used as it is; an older one is brought up to date."""
    tasks.write(
        "CREATE TABLE worker_it.growing (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.growing VALUES (0, 0), (1, 1), (7, 7)",
    )
    monkeypatch.setattr(handed_over, "_OLDEST", oldest)
    found = worker._found

    def changed(*given):
        answer = found(*given)
        tasks.write("INSERT INTO worker_it.growing VALUES (2, 2)")
        return answer

    monkeypatch.setattr(worker, "_found", changed)
    try:
        summary = tasks.both(WRITTEN.replace("worker_it.fact", "worker_it.growing"))
        assert (summary["local_task"], summary["kept"]) == ("worker", 2)
        assert [day for _, day in sorted(written(tasks))] == days
        assert bool(summary["work"]["prelaunch"]["partitions_fetched"]) == looked_up
    finally:
        tasks.write("DROP TABLE worker_it.growing")


def test_spark_reads_the_keys_if_it_is_ready_before_the_worker(tasks, monkeypatch, caplog):
    monkeypatch.setattr(embedded, "_WARM", 1_000.0)
    ended = threading.Event()
    found = worker._found
    monkeypatch.setattr(worker, "_found", lambda *given: (ended.wait(60), found(*given))[1])
    try:
        with caplog.at_level("INFO"):
            summary = tasks.both(WRITTEN)
    finally:
        ended.set()
    assert summary["local_task"] == "spark"
    assert "Spark runs the local task: the worker has not finished" in caplog.text
    assert written(tasks) == tasks.rows(OF_KEYS)


def test_with_local_task_worker_spark_waits_for_the_worker(tasks, monkeypatch):
    monkeypatch.setattr(embedded, "_WARM", 1_000.0)
    found = worker._found
    monkeypatch.setattr(worker, "_found", lambda *a: (threading.Event().wait(3), found(*a))[1])
    assert tasks.both(OF_KEYS, local_task="worker")["local_task"] == "worker"


@pytest.mark.parametrize("by", ["argument", "configuration"])
def test_with_local_task_spark_the_worker_reads_no_keys(tasks, cold, asked, monkeypatch, by):
    if by == "configuration":
        monkeypatch.setenv("AIRFLOW__HIVE_OPT__LOCAL_TASK", "spark")
    options = {"local_task": "spark"} if by == "argument" else {}
    assert tasks.both(OF_KEYS, **options)["local_task"] == "spark"
    assert tasks.prune(OF_KEYS, **{"local_task": None, **options})["local_task"] == "spark"
    assert asked == []


def test_the_argument_local_task_precedes_the_configuration(tasks, monkeypatch, no_spark):
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__LOCAL_TASK", "spark")
    assert tasks.prune(OF_KEYS)["local_task"] == "worker"
    assert no_spark == []


@pytest.mark.parametrize("stages", ["prune", "both"])
def test_with_local_task_worker_an_unanswered_statement_fails_the_task(
    tasks, cold, monkeypatch, stages
):
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__LOCAL_TASK", "worker")
    with pytest.raises(AirflowFailException) as raised:
        getattr(tasks, stages)(UNANSWERED, local_task=None)
    assert str(raised.value) == (
        "the worker can't run the local task: worker_it.few is a view, "
        "which only Spark can read. Set local_task to 'auto'"
    )
    assert raised.value._message_says_all  # so Airflow logs no stack


def test_an_unknown_value_of_local_task_is_refused(tasks, monkeypatch):
    message = "local_task must be auto, spark or worker, not 'both'"
    with DAG("d"):
        for make in (
            lambda: LocalTaskOperator(task_id="t", sql="SELECT 1", local_task="both"),
            lambda: MapJoinPruneOperator(task_id="t", sql="SELECT 1", local_task="both"),
            lambda: MapJoinPruneTaskGroup("g", sql="SELECT 1", local_task="both"),
            task.map_join_prune(lambda: "", task_id="t", local_task="both"),
        ):
            with pytest.raises(ValueError, match=message):
                make()
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__LOCAL_TASK", "both")
    with pytest.raises(AirflowFailException, match=rf"\[hive_opt\] {message}"):
        tasks.prune(OF_KEYS, local_task=None)


GATES = {
    "no key, skip": (NO_KEYS, {"on_empty": "skip"}, AirflowSkipException),
    "no key, fail": (NO_KEYS, {"on_empty": "fail"}, AirflowFailException),
    "too many partitions": (OF_KEYS, {"max_partitions": 2}, AirflowFailException),
    "too many bytes": (OF_KEYS, {"max_bytes": 10}, AirflowFailException),
    "nothing pruned": (NOT_PRUNED, {"on_no_prune": "fail"}, AirflowFailException),
}


@pytest.fixture(params=GATES)
def gate(request):
    return GATES[request.param]


def test_gates_close_in_the_worker_with_sparks_messages(tasks, gate, monkeypatch):
    sql, options, kind = gate
    said = []
    for local_task in ("spark", "worker"):
        if local_task == "worker":
            monkeypatch.setattr(sessions, "spark_session", None)
        with pytest.raises(kind) as raised:
            tasks.prune(sql, local_task, **options)
        said.append((type(raised.value), str(raised.value)))
    assert said[0] == said[1]


def test_a_gate_that_closes_in_the_worker_submits_no_job(tasks, gate, cluster):
    sql, options, kind = gate
    with pytest.raises(kind):
        tasks.both(sql, conn_id="cluster", **options)
    assert cluster == []


def test_a_workers_list_within_all_gates_is_used_and_has_its_sizes(tasks, no_spark):
    options = {"on_empty": "fail", "max_partitions": 3, "max_bytes": 1 << 20, "on_no_prune": "fail"}
    pruned = tasks.prune(OF_KEYS, **options)
    (target,) = descriptor_of(pruned).targets
    place = Path(target.location.removeprefix("file:"))
    for partition in target.partitions:
        files = (place / f"p={partition.values[0]}").glob("part-*")
        assert partition.bytes == sum(file.stat().st_size for file in files) > 0


def test_a_submitted_job_gets_the_workers_list(tasks, cluster):
    summary = tasks.both(WRITTEN, conn_id="cluster")
    (job,) = cluster
    assert job.descriptor.endswith("/MapJoinPruneOperator/-1/1.json")
    assert (summary["local_task"], summary["kept"]) == ("worker", 3)
    assert set(summary["seconds"]) == {"local task", "prelaunch", "map join", "report"}
    assert written(tasks) == tasks.rows(OF_KEYS)


def test_each_attempt_submits_a_job_with_the_same_digest(tasks, cluster):
    for _ in range(2):
        tasks.both(WRITTEN, conn_id="cluster")
    first, second = cluster
    assert first.descriptor != second.descriptor
    assert first.digest_of_work() == second.digest_of_work()


def test_a_submitted_job_reads_the_keys_if_the_worker_can_not(tasks, cluster, caplog):
    with caplog.at_level("INFO"):
        summary = tasks.both(UNANSWERED, conn_id="cluster")
    assert (summary["local_task"], summary["kept"], cluster[0].descriptor) == ("spark", 3, None)
    assert "Spark runs the local task: worker_it.few is a view" in caplog.text


def test_a_run_with_prune_only_starts_no_spark(tasks, no_spark):
    found = tasks.context("MapJoinPruneOperator")
    operator = tasks.made(MapJoinPruneOperator, OF_KEYS, prune_only=True)
    operator.render_template_fields(found)
    with pytest.raises(AirflowSkipException, match="nothing was joined"):
        operator.execute(found)
    assert found["ti"].pushed["return_value"]["local_task"] == "worker"
    assert no_spark == []


def test_a_descriptor_that_can_not_be_written_fails_the_task(tasks, no_spark):
    with pytest.raises(AirflowException, match="can't write /proc/nowhere"):
        tasks.run(LocalTaskOperator, OF_KEYS, local_task="worker", descriptor_path="/proc/nowhere")


def test_several_local_tasks_run_at_once_in_one_process(tasks, no_spark):
    """Tasks of one process, as with the executors that fork none."""
    statements = [OF_KEYS.replace("< 3", f"< {number}") for number in range(1, 6)]
    with ThreadPoolExecutor(5) as threads:
        found = list(threads.map(tasks.prune, statements))
    assert [each["kept"] for each in found] == [1, 2, 3, 4, 5]
    assert len({each["uri"] for each in found}) == 5
