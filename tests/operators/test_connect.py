"""The operators on a ``spark_connect`` connection: where they run, and their error messages."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.connections import deployment_of
from airflow_hive_opt.spark.session.connect import remote_session
from tests.operators.star_tables import make_star
from tests.services.processes import HOST, free_port
from tests.versions.installed import needs_spark

SQL = "SELECT f.id, f.p FROM op.fact f JOIN op.keys k ON f.p = k.p AND k.id < 3"
SECRET = "not-for-logs"
# Tasks that can be interrupted: they generate rows, and gather none.
FOREVER = "SELECT count(*) AS n FROM range(0, 100000000000, 1, 8) r, op.fact WHERE hash(r.id) <> 7"


@pytest.fixture(scope="module")
def remote(connect_server):
    with remote_session(connect_server.url, {}) as session:
        make_star(session, "op")
        yield session
        session.sql("DROP DATABASE op CASCADE")


@pytest.fixture(autouse=True)
def connection(request, monkeypatch):
    if "remote" in request.fixturenames:
        port = request.getfixturevalue("connect_server").port
        connect(monkeypatch, host=HOST, port=port, login="me")


def connect(monkeypatch, **document):
    document = json.dumps({"conn_type": "spark_connect", **document})
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", document)


def context(task_id="task"):
    pushed = {}
    instance = SimpleNamespace(
        dag_id="d", run_id="r", task_id=task_id, map_index=-1, try_number=1, pushed=pushed
    )
    instance.xcom_push = lambda key, value: pushed.update({key: value})
    return {"ti": instance, "params": {}}


def made(tmp_path, cls=MapJoinPruneOperator, **options):
    options = {"sql": SQL, "conn_id": "server", "descriptor_path": str(tmp_path), **options}
    return cls(task_id="task", **options)


def test_one_task_prunes_and_joins_on_a_spark_connect_server(remote, tmp_path, capsys, caplog):
    conf = {"spark.sql.shuffle.partitions": 3, "spark.sql.warehouse.dir": "/elsewhere"}
    summary = made(tmp_path, conf=conf).execute(context())
    assert (summary["kept"], summary["total"], summary["reason"]) == (3, 10, "PRUNED")
    assert summary["work"] == {"local task": None, "map join": None, "report": None}
    assert summary["application_id"].startswith("local-")
    log = capsys.readouterr().out
    assert "metastore calls and files are not counted" in log
    assert "the Spark Connect server did not change spark.sql.warehouse.dir: " in caplog.text
    assert "kept 3 of 10 partitions (70.0 % pruned): fact.p by 3 keys of keys" in log


def test_two_tasks_share_the_descriptor_on_a_spark_connect_server(remote, tmp_path):
    pruned = made(tmp_path, LocalTaskOperator).execute(context())
    joined = made(tmp_path, MapJoinOperator, descriptor=pruned).execute(context("join"))
    assert joined["uri"] == pruned["uri"]
    assert joined["kept"] == 3
    assert [each["way"] for each in joined["decisions"]] == ["filter"]


def test_a_closed_gate_or_a_wrong_statement_fails_with_one_message(remote, tmp_path):
    with pytest.raises(AirflowFailException, match="max_partitions is 2"):
        made(tmp_path, max_partitions=2).execute(context())
    with pytest.raises(AirflowFailException, match="line 1, column 15: there is no table op.no"):
        made(tmp_path, sql="SELECT a FROM op.no").execute(context())
    with pytest.raises(AirflowException, match=r"^\[DIVIDE_BY_ZERO\]"):
        made(tmp_path, sql="SELECT 1 / (id - id) FROM op.fact").execute(context())


def test_stopping_the_task_stops_its_statement(remote, tmp_path):
    operator = made(tmp_path, sql=FOREVER)
    raised = []

    def execute():
        try:
            operator.execute(context())
        except AirflowException as error:
            raised.append(str(error))

    task = threading.Thread(target=execute)
    task.start()
    deadline = time.monotonic() + 60
    while not list(tmp_path.rglob("1.json")):  # then the join begins
        assert time.monotonic() < deadline
        time.sleep(0.1)
    operator.on_kill()
    task.join(60)
    assert not task.is_alive()
    assert "OPERATION_CANCELED" in raised[0] or "SESSION_CLOSED" in raised[0]


@needs_spark("4.0")
def test_the_error_names_a_server_that_does_not_answer_without_its_token(tmp_path, monkeypatch):
    port = free_port()
    connect(monkeypatch, host=f"sc://{HOST}", port=port, login="me", password=SECRET)
    with pytest.raises(AirflowException) as error:
        made(tmp_path).execute(context())
    message = f"connection 'server': no Spark Connect server answers at {HOST}:{port}: "
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("host", ["", "sc://h/path", "sc://me:pw@h", "h;token=t", "http://h"])
def test_a_connection_without_a_server_address_is_refused(tmp_path, monkeypatch, host):
    connect(monkeypatch, host=host, password=SECRET)
    with pytest.raises(
        AirflowFailException, match="'server' names no Spark Connect server"
    ) as error:
        made(tmp_path).execute(context())
    assert SECRET not in str(error.value)
    assert "pw" not in str(error.value)


def test_the_token_in_the_address_is_not_in_the_repr(monkeypatch):
    connect(monkeypatch, host="h", port=1, password=SECRET)
    place = deployment_of("server")
    assert place.address == f"sc://h:1/;token={SECRET}"
    assert SECRET not in repr(place)
