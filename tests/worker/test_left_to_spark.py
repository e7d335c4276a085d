"""What the worker leaves to Spark, with the reason in the log; and the errors that Spark words."""

from __future__ import annotations

import json

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift.connection import ThriftConnection
from airflow_hive_opt.provider import worker
from airflow_hive_opt.provider.connections import Deployment
from tests.services.lake_entries import add_entry
from tests.services.processes import free_port
from tests.worker.tasks import HERE, worker_job

OF_KEYS = "SELECT f.id, f.p FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p AND k.id < 3"
REWRITTEN = (
    f"{OF_KEYS} UNION ALL SELECT a.id, a.p FROM worker_it.keys a WHERE a.p < "
    "(SELECT avg(b.p) FROM worker_it.keys b WHERE b.id = a.id)"
)


@pytest.fixture(scope="module", autouse=True)
def tables(session):
    for sql in (
        "CREATE TABLE worker_it.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.fact SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)",
        "CREATE TABLE worker_it.keys (id INT, p INT) STORED AS PARQUET",
        "INSERT INTO worker_it.keys SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)",
        "CREATE VIEW worker_it.few AS SELECT * FROM worker_it.keys",
        "CREATE TABLE worker_it.lines USING json AS SELECT * FROM worker_it.keys",
        "CREATE TABLE worker_it.own USING parquet AS SELECT * FROM worker_it.keys",
    ):
        session.sql(sql)
    for provider in ("delta", "iceberg"):
        add_entry(session, "worker_it.own", f"worker_it.in_{provider}", provider)


def why(job, place=HERE, conf=None, conn_id="metastore"):
    """Why Spark runs the local task; fails if the worker can run it."""
    task = worker.WorkerLocalTask(job, "auto", place, conf or {}, conn_id, None)
    found = task.job_or_outcome()
    assert isinstance(found, Job)
    assert found is job
    return task._answer.result()


@pytest.mark.parametrize(
    ("small", "reason"),
    [
        ("few", "worker_it.few is a view"),
        ("in_delta", "delta"),
        ("in_iceberg", "iceberg"),
        ("lines", "format"),
        ("none", "worker_it.none is no table of the metastore"),
    ],
)
def test_unsupported_small_tables_are_left_to_spark(tasks, small, reason):
    assert reason in why(worker_job(tasks, OF_KEYS.replace("worker_it.keys", f"worker_it.{small}")))


@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        ({"spark.hadoop.hive.metastore.sasl.enabled": "true"}, "sasl.enabled is set to true, but"),
        ({"spark.hadoop.hive.metastore.use.SSL": True}, "use.SSL is set to true, but"),
        ({"spark.sql.catalogImplementation": "in-memory"}, "there is no Hive metastore"),
        ({"spark.sql.legacy.sizeOfNull": "true"}, "legacy.sizeOfNull, Spark may read other"),
        ({"spark.sql.parquet.binaryAsString": True}, "binaryAsString, Spark may read other values"),
        (
            {"spark.sql.hive.manageFilesourcePartitions": "false"},
            "manageFilesourcePartitions, Spark may read other values",
        ),
        ({"spark.sql.parser.escapedStringLiterals": "true"}, "changes how the statement is read"),
    ],
)
def test_some_settings_leave_the_local_task_to_spark(tasks, conf, reason):
    job = worker_job(tasks, f"{OF_KEYS} AND concat(k.id, '\\\\d') <> 'x'")
    assert reason in why(job, conf=conf)


def test_a_setting_in_a_set_line_leaves_the_local_task_to_spark(tasks):
    job = worker_job(tasks, f"SET spark.sql.legacy.sizeOfNull=true;\n{OF_KEYS}")
    assert "sizeOfNull, Spark may read other values" in why(job)


def test_a_task_without_a_metastore_is_left_to_spark(tasks):
    job = worker_job(tasks, OF_KEYS)
    assert why(job, conn_id=None) == "the task names no metastore: set metastore_conn_id"
    with pytest.raises(AirflowFailException, match="there is no connection 'nobody'"):
        why(job, conn_id="nobody")


def test_the_worker_uses_the_metastore_in_conf(tasks, metastore_service):
    conf = {"spark.hadoop.hive.metastore.uris": metastore_service.uri}
    pruned = tasks.prune(OF_KEYS, metastore_conn_id=None, conf=conf)
    assert (pruned["local_task"], pruned["kept"]) == ("worker", 3)


def test_the_metastore_in_conf_precedes_the_connection(tasks, metastore_service, monkeypatch):
    """As it does for Spark."""
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", f"hive-metastore://127.0.0.1:{free_port()}")
    conf = {"spark.hadoop.hive.metastore.uris": metastore_service.uri}
    pruned = tasks.prune(OF_KEYS, metastore_conn_id="other", conf=conf)
    assert (pruned["local_task"], pruned["kept"]) == ("worker", 3)
    conf = {"spark.hadoop.hive.metastore.client.factory.class": "com.amazonaws.glue.X", **conf}
    assert "is AWS Glue: set metastore_conn_id" in why(worker_job(tasks, OF_KEYS), conf=conf)


def test_a_task_on_spark_connect_is_left_to_spark(tasks):
    place = Deployment("connect", "sc://nowhere")
    assert "the metastore of a Spark Connect server" in why(worker_job(tasks, OF_KEYS), place)


def test_a_metastore_with_an_unsupported_login_is_left_to_spark(tasks, monkeypatch):
    document = {"conn_type": "hive_metastore", "host": "h", "extra": {"auth_mechanism": "SCRAM"}}
    monkeypatch.setenv("AIRFLOW_CONN_SECURED", json.dumps(document))
    assert "requires SCRAM" in why(worker_job(tasks, OF_KEYS), conn_id="secured")


@pytest.mark.parametrize("missing", ["duckdb", "pyarrow"])
def test_a_task_without_the_extra_worker_is_left_to_spark(tasks, monkeypatch, missing):
    monkeypatch.setattr(worker, "find_spec", lambda name: None if name == missing else name)
    job = worker_job(tasks, OF_KEYS)
    assert "pip install 'airflow-hive-opt[worker]'" in why(job)


def test_a_metastore_that_does_not_answer_is_left_to_spark(tasks, monkeypatch):
    document = {"conn_type": "hive_metastore", "host": "127.0.0.1", "port": free_port()}
    monkeypatch.setenv("AIRFLOW_CONN_GONE", json.dumps(document))
    assert "the metastore fails: no answer" in why(worker_job(tasks, OF_KEYS), conn_id="gone")


@pytest.mark.parametrize("calls", range(4))
def test_a_metastore_that_fails_after_some_calls_is_left_to_spark(tasks, monkeypatch, calls):
    """After some calls; Spark asks through a client of its own."""
    answered = []
    real = ThriftConnection.call

    def call(self, method, *arguments):
        if len(answered) == calls:
            raise MetastoreError("it went away")
        answered.append(method)
        return real(self, method, *arguments)

    monkeypatch.setattr(ThriftConnection, "call", call)
    assert why(worker_job(tasks, OF_KEYS)) == "the metastore fails: it went away"


def test_a_statement_that_may_be_rewritten_is_left_to_spark(tasks):
    job = worker_job(tasks, REWRITTEN)
    assert "Spark's statistics decide" in why(
        Job(job.sql, job.path, job.stages, hive_conf={"hive.optimize.correlation": "true"})
    )


def test_an_unexpected_error_of_the_worker_is_left_to_spark(tasks, monkeypatch, caplog):
    def fails(*_):
        raise RuntimeError("a mistake")

    monkeypatch.setattr("airflow_hive_opt.worker.local_task.find", fails)
    with caplog.at_level("INFO"):
        assert why(worker_job(tasks, OF_KEYS)) == "RuntimeError: a mistake"
    assert "Spark runs the local task: RuntimeError: a mistake" in caplog.text


@pytest.mark.parametrize("stages", ["prune", "both"])
def test_spark_runs_the_local_task_that_the_worker_leaves(tasks, caplog, stages):
    sql = OF_KEYS.replace("worker_it.keys", "worker_it.few")
    with caplog.at_level("INFO"):
        summary = getattr(tasks, stages)(sql, local_task="auto")
    assert (summary["local_task"], summary["kept"]) == ("spark", 3)
    if stages == "prune":  # the other one may be ready before the worker
        assert "Spark runs the local task: worker_it.few is a view" in caplog.text


@pytest.mark.parametrize("stages", ["prune", "both"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT\n  x y z FROM t",
        "SELECT a FROM worker_it.nowhere",
        "SELECT nope FROM worker_it.fact",
        "SELECT p FROM worker_it.fact f JOIN worker_it.keys k ON f.p = k.p",
    ],
)
def test_wrong_statements_fail_as_on_spark(tasks, stages, sql):
    said = []
    for local_task in ("spark", "auto"):
        with pytest.raises(AirflowFailException) as raised:
            getattr(tasks, stages)(sql, local_task=local_task)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert "line " in said[0]
