"""A retry after the end of its Spark Connect server: the statement writes once."""

from __future__ import annotations

import json
import logging
import shutil
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from signal import SIGKILL, SIGSTOP

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from packaging.version import Version

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.start_errors import start_errors
from airflow_hive_opt.spark.application import run
from airflow_hive_opt.spark.application.handed_over import brought_up_to_date
from airflow_hive_opt.spark.catalog.connect_catalog import ConnectCatalog
from airflow_hive_opt.spark.session import server_process
from airflow_hive_opt.spark.session.connect import remote_session
from tests.operators.connect_attempt import context, first_attempt, made
from tests.operators.star_tables import make_star
from tests.services.processes import own_address
from tests.services.spark_connect import spark_connect

pytestmark = pytest.mark.slow
# Each partition is a task of Spark, and those of some partitions take time.
INSERT = (
    "INSERT {verb} {{table}} PARTITION (day = 'a') SELECT IF(f.p < {first_slow}, f.id, "
    "IF(java_method('java.lang.Thread', 'sleep', 4000L) = 'x', -1, f.id)) AS id "
    "FROM restarted.fact f JOIN restarted.keys k ON f.p = k.p AND k.id < 3"
)
ROWS = [0, 1, 2]
NUMBERS = count()


@pytest.fixture(scope="module")
def server(tmp_path_factory, metastore_service):
    if (host := own_address()) is None:
        pytest.skip("on loopback, nothing shows that it is the same server")
    own = {
        **metastore_service.spark_conf(),
        "spark.master": "local[4]",
        "spark.sql.files.minPartitionNum": "9",
    }
    with spark_connect(tmp_path_factory.mktemp("connect"), own, host) as running:
        with remote_session(running.url, {}) as session:
            make_star(session, "restarted")
        yield running


@pytest.fixture
def result(server, monkeypatch):
    """The name of a table without rows, and its folder."""
    at = {"conn_type": "spark_connect", "host": server.host, "port": server.port}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps(at))
    monkeypatch.setattr(server_process, "_TO_END", 1)
    name = f"restarted.result_{next(NUMBERS)}"
    with remote_session(server.url, {}) as session:
        session.sql(f"CREATE TABLE {name} (id INT, day STRING) USING parquet PARTITIONED BY (day)")
        described = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    (location,) = [row.data_type for row in described if row.col_name == "Location"]
    return name, Path(location.removeprefix("file:"))


def rows(server, table):
    with remote_session(server.url, {}) as session:
        return sorted(row.id for row in session.table(table).collect())


class Killing(dict):
    """Settings that end the server before it takes the first, and start it again."""

    def __init__(self, server):
        super().__init__({"spark.sql.shuffle.partitions": "3"})
        self._server = server

    def items(self):
        self._server.kill(SIGKILL)
        self._server.start()
        return super().items()


def test_a_server_that_ends_before_the_settings_is_no_wrong_setting(server):
    where = rf"{server.host}:{server.port} did not take the setting spark.sql.shuffle.partitions: "
    with (
        pytest.raises(AirflowException, match=where) as raised,
        start_errors(),
        remote_session(server.url, Killing(server)),
    ):
        pass
    assert type(raised.value) is AirflowException  # so Airflow retries
    with (
        pytest.raises(AirflowFailException, match="^conf: .*spark.sql.shuffle.partitions"),
        start_errors(),
        remote_session(server.url, {"spark.sql.shuffle.partitions": "x"}),
    ):
        pass


@pytest.mark.parametrize("cls", [MapJoinPruneOperator, LocalTaskOperator])
def test_a_server_that_ends_while_tables_are_looked_up_closes_no_gate(
    server, result, tmp_path, monkeypatch, cls
):
    """What is not found then may not count as "nothing can be pruned", which no retry follows."""

    def ends(catalog, name):
        patched.undo()
        server.kill(SIGKILL)
        server.start()
        return catalog.table(name)

    sql = INSERT.format(verb="INTO", first_slow=9).format(table=result[0])
    with monkeypatch.context() as patched:
        patched.setattr(ConnectCatalog, "table", ends)
        with pytest.raises(AirflowException, match="NO_ACTIVE_SESSION") as raised:
            operator = cls(
                task_id="t",
                sql=sql,
                conn_id="server",
                descriptor_path=str(tmp_path),
                on_no_prune="fail",
            )
            operator.execute(context(tmp_path, 1))
    assert type(raised.value) is AirflowException
    assert rows(server, result[0]) == []


def test_a_server_that_ends_during_prelaunch_closes_no_gate(server, result, tmp_path, monkeypatch):
    """What prelaunch could not look up then may not count as gone."""

    def ends(*given):
        found = brought_up_to_date(*given)
        server.kill(SIGKILL)
        server.start()
        return replace(found, targets=())

    given = {
        "sql": INSERT.format(verb="INTO", first_slow=9).format(table=result[0]),
        "conn_id": "server",
        "descriptor_path": str(tmp_path),
        "on_no_prune": "fail",
    }
    found = LocalTaskOperator(task_id="l", **given).execute(context(tmp_path, 1))
    monkeypatch.setattr(run, "brought_up_to_date", ends)
    with pytest.raises(AirflowException, match="NO_ACTIVE_SESSION") as raised:
        MapJoinOperator(task_id="t", descriptor=found, **given).execute(context(tmp_path, 1))
    assert type(raised.value) is AirflowException  # so Airflow retries
    assert rows(server, result[0]) == []


# Where a statement's job writes: Spark's dynamic overwrite has a folder of its own for each job.
VERBS = pytest.mark.parametrize(
    ("verb", "written"),
    [("INTO", "_temporary/0"), ("OVERWRITE TABLE", ".spark-staging-*/_temporary/0")],
)


def kill_first(server, folder, sql, at, pattern):
    """Runs the first attempt; kills its server and its worker once there is such a file."""
    with first_attempt(folder, sql) as task:
        deadline = time.monotonic() + 120
        while not any(at.glob(pattern)):
            assert task.poll() is None, (folder / "first.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.kill(SIGKILL)
    server.start()


@VERBS
def test_a_statement_that_ended_with_its_server_runs_again(
    server, result, tmp_path, verb, written, caplog
):
    caplog.set_level(logging.INFO)
    table, at = result
    sql = INSERT.format(verb=verb, first_slow=0).format(table=table)
    kill_first(server, tmp_path, sql, at, written)
    made(tmp_path, sql).execute(context(tmp_path, 2))
    assert rows(server, table) == ROWS
    assert "the server was started again since" in caplog.text


def test_an_overwrite_that_had_succeeded_is_not_repeated(server, result, tmp_path, caplog):
    """The server ends before anybody has heard of it; the names of the files say it."""
    table, at = result
    sql = INSERT.format(verb="OVERWRITE TABLE", first_slow=2).format(table=table)
    with first_attempt(tmp_path, sql) as task:
        while not any(at.glob(".spark-staging-*")):
            assert task.poll() is None, (tmp_path / "first.log").read_text()
            time.sleep(0.02)
        task.send_signal(SIGSTOP)
        deadline = time.monotonic() + 60
        while rows(server, table) != ROWS or any(at.glob(".spark-staging-*")):
            assert time.monotonic() < deadline
        server.kill(SIGKILL)
    server.start()
    files = sorted(at.rglob("*.parquet"))
    caplog.set_level(logging.INFO)
    for number in (2, 3):
        summary = made(tmp_path, sql).execute(context(tmp_path, number))
        assert summary["uri"].endswith("/1.json")
    assert "the files of the statement of try 1 are in file:" in caplog.text
    assert sorted(at.rglob("*.parquet")) == files
    made(tmp_path, sql).execute(context(tmp_path, 4, max_tries=4))  # somebody has cleared the task
    assert rows(server, table) == ROWS
    assert not set(files) & set(at.rglob("*.parquet"))


@VERBS
def test_files_of_finished_tasks_are_not_added_twice(server, result, tmp_path, verb, written):
    """An overwrite leaves them in the folder of its own job, so they don't stop the next one."""
    table, at = result
    sql = INSERT.format(verb=verb, first_slow=2).format(table=table)
    kill_first(server, tmp_path, sql, at, f"{written}/task_*")
    if verb == "INTO":
        for attempt in (context(tmp_path, 2), context(tmp_path, 3, max_tries=3)):
            with pytest.raises(AirflowException, match="/_temporary/0 has files"):
                made(tmp_path, sql).execute(attempt)
        assert rows(server, table) == []
        shutil.rmtree(at / "_temporary" / "0")
    made(tmp_path, sql).execute(context(tmp_path, 4, max_tries=5))
    assert rows(server, table) == ROWS
