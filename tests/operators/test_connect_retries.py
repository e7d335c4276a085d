"""A retry after the death of its worker: the statement on the Spark Connect server writes once."""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from packaging.version import Version
from pyspark.errors import PySparkException

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION
from airflow_hive_opt.provider.airflow_compat import ObjectStoragePath
from airflow_hive_opt.provider.operation_record import OperationRecord
from airflow_hive_opt.spark.session.connect import remote_session
from tests.fuzz.findings import count_of
from tests.operators.connect_attempt import context, first_attempt, made, record_of
from tests.operators.star_tables import make_star
from tests.services.processes import HOST, free_port

ROUNDS = count_of("KILLS", 4)
# Three of ten partitions, each row takes some time, and Spark can interrupt the wait.
INSERT = (
    "INSERT INTO again.result SELECT f.id, java_method('java.lang.Thread', 'sleep', 400L) AS slept "
    "FROM again.fact f JOIN again.keys k ON f.p = k.p AND k.id < 3"
)
SLOW = INSERT.replace("400L", "3000L")  # runs still when a test interrupts it, on any machine
ROWS = [0, 1, 2]


@pytest.fixture(scope="module")
def server(connect_server):
    with remote_session(connect_server.url, {}) as session:
        make_star(session, "again")
        session.sql("CREATE TABLE again.result (id INT, slept STRING) USING parquet")
        yield session
        session.sql("DROP DATABASE again CASCADE")


@pytest.fixture
def rows(server, connect_server, monkeypatch):
    """The table's rows, which are none at first."""
    at = {"conn_type": "spark_connect", "host": HOST, "port": connect_server.port, "login": "me"}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps(at))
    server.sql("TRUNCATE TABLE again.result")

    def found() -> list[int]:
        server.sql("REFRESH TABLE again.result")
        return sorted(row.id for row in server.table("again.result").collect())

    return found


@pytest.fixture(params=["file", pytest.param("store", marks=pytest.mark.slow)])
def folder(request, tmp_path):
    """Where an attempt writes; its name says whether Airflow keeps a task's state."""
    found = tmp_path / request.param
    found.mkdir()
    return found


def begun(task, folder):
    """Waits until the first attempt has stored its statement's record."""
    deadline = time.monotonic() + 90
    while (found := record_of(folder)) is None:
        assert task.poll() is None, (folder / "first.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return REMOTE_OPERATION.decode(found)


def running(task, folder, session, table="again.result"):
    """Waits until a task of the statement writes, or one that overwrites a partition has begun.

    A statement that is interrupted sooner may run to its end. Asks the server nothing about it:
    Spark drops a statement if somebody asks before its thread runs.
    """
    begun(task, folder)
    described = session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    location = next(row.data_type for row in described if row.col_name == "Location")
    place = Path(location.removeprefix("file:"))
    deadline = time.monotonic() + 90
    while not [*place.glob("_temporary/0/_temporary/*"), *place.glob(".spark-staging-*")]:
        assert task.poll() is None, (folder / "first.log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def kill(task, how=signal.SIGKILL):
    task.send_signal(how)
    task.wait(60)


def retried(folder, *tries):
    made(folder, INSERT).execute(context(folder, *tries))


def wrote_once(retry, rows, how):
    """The table has each row once after a retry, whenever the first attempt has got a signal.

    ``retry`` gets the number of the try and Airflow's ``max_tries``. Returns whether it has done
    what the task is to do; otherwise it has asked for a person.
    """
    try:
        retry(2)
    except AirflowFailException as error:  # interrupted while it committed, after that, or too soon
        assert how is signal.SIGTERM
        assert "it may have written all or some of its rows" in str(error)
        assert 0 < len(rows()) == len(set(rows()))
        return False
    except AirflowException as error:  # a task has ended just after Spark had cleaned up
        assert how is signal.SIGTERM
        named = re.match(
            "file:(.+/_temporary/0) has files that this statement would add", f"{error}"
        )
        assert named, error
        assert rows() == []
        shutil.rmtree(named[1])
        retry(3, 3)  # somebody has cleared the task
    assert rows() == ROWS
    return True


def test_a_retry_follows_the_statement_of_a_killed_worker(rows, folder, caplog, server):
    with first_attempt(folder, INSERT) as task:
        running(task, folder, server)
        kill(task)
    caplog.set_level(logging.INFO)
    summary = made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS
    assert (summary["kept"], summary["total"], summary["reason"]) == (3, 10, "PRUNED")
    assert summary["uri"].endswith("/1.json")
    assert "try 1 of this task has begun a statement" in caplog.text
    assert "the statement that try 1 has begun has ended: succeeded" in caplog.text
    made(folder, INSERT).execute(context(folder, 3))  # its own worker may have died too
    assert rows() == ROWS
    made(folder, INSERT).execute(context(folder, 3, clear_number=1))  # another task was cleared
    assert rows() == ROWS
    made(folder, INSERT).execute(context(folder, 4, max_tries=4))
    assert rows() == sorted(ROWS * 2)


def test_a_retry_empties_the_partition_of_a_killed_worker_without_rows(
    rows, folder, caplog, server, monkeypatch
):
    """Spark's dynamic overwrite leaves the old rows there if the query returns none."""
    server.sql("DROP TABLE IF EXISTS again.days")
    server.sql("CREATE TABLE again.days (id INT, day STRING) USING parquet PARTITIONED BY (day)")
    overwrite = (
        "INSERT OVERWRITE again.days PARTITION (day = '1') SELECT f.id FROM again.fact f "
        "JOIN again.keys k ON f.p = k.p AND k.id < 3 "
        "WHERE java_method('java.lang.Thread', 'sleep', 700L) = 'none'"
    )

    def days():
        server.sql("REFRESH TABLE again.days")
        return sorted(map(tuple, server.table("again.days").collect()))

    server.sql("INSERT INTO again.days VALUES (1, '1'), (2, '2')")
    with first_attempt(folder, overwrite) as task:
        running(task, folder, server, "again.days")
        kill(task)
    assert begun(task, folder).before is not None
    caplog.set_level(logging.INFO)
    summary = made(folder, overwrite).execute(context(folder, 2))
    assert summary["uri"].endswith("/1.json")
    assert "the query has returned no row, so the partition is emptied" in caplog.text
    assert days() == [(2, "2")]

    def fails(*_):
        raise PySparkException("the server is gone")

    server.sql("INSERT INTO again.days VALUES (3, '1')")
    name = "airflow_hive_opt.spark.map_join.{}.empty_if_unwritten"
    with monkeypatch.context() as patch:
        patch.setattr(name.format("execution"), fails)
        made(folder, overwrite).execute(context(folder, 3, max_tries=3))
    assert days() == [(2, "2")]
    server.sql("INSERT INTO again.days VALUES (4, '1')")
    with monkeypatch.context() as patch:
        patch.setattr(name.format("execution"), fails)
        patch.setattr(name.format("dynamic_overwrite"), fails)
        with pytest.raises(AirflowException, match="Without one, file:\\S+ must be emptied"):
            made(folder, overwrite).execute(context(folder, 4, max_tries=4))
    assert days() == [(2, "2"), (4, "1")]
    summary = made(folder, overwrite).execute(context(folder, 5, max_tries=4))
    assert summary["uri"].endswith("/4.json")
    assert days() == [(2, "2")]


def test_a_cleared_task_stops_the_statement_of_a_killed_worker(rows, folder, server):
    with first_attempt(folder, SLOW) as task:
        running(task, folder, server)
        kill(task)
    summary = made(folder, SLOW).execute(context(folder, 2, max_tries=2))
    assert rows() == ROWS
    assert summary["uri"].endswith("/2.json")


@pytest.mark.slow
def test_a_retry_with_other_work_stops_the_statement_of_a_killed_worker(rows, folder, server):
    with first_attempt(folder, SLOW) as task:
        running(task, folder, server)
        kill(task)
    made(folder, INSERT.replace("400L", "0L")).execute(context(folder, 2))
    assert rows() == ROWS


@pytest.mark.slow
def test_a_retry_waits_for_nothing_that_has_ended(rows, folder, server):
    """The worker is killed after the statement has ended: the retry has its outcome at once."""
    with first_attempt(folder, INSERT) as task:
        running(task, folder, server)
        kill(task)
    deadline = time.monotonic() + 60
    while rows() != ROWS:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_however_a_worker_ends_the_statement_writes_once(rows, folder, how, server):
    """Each round ends the first attempt at another moment of the statement."""
    chance = random.Random(f"{folder.name} {how}")
    done = []
    for number in range(ROUNDS):
        own = folder.with_name(f"{number}") / folder.name
        own.mkdir(parents=True)
        with first_attempt(own, INSERT) as task:
            begun(task, own)
            time.sleep(chance.random() * 2)
            kill(task, how)
        done.append(wrote_once(partial(retried, own), rows, how))
        server.sql("TRUNCATE TABLE again.result")
    assert any(done)


def test_a_task_that_is_stopped_leaves_no_statement_behind(rows, folder, caplog, server):
    with first_attempt(folder, SLOW) as task:
        running(task, folder, server)
        began = time.monotonic()
        kill(task, signal.SIGTERM)
        assert time.monotonic() - began < 15
    assert REMOTE_OPERATION.decode(record_of(folder)).may_have_written
    time.sleep(3)
    assert rows() == []
    caplog.set_level(logging.INFO)
    made(folder, SLOW).execute(context(folder, 2))
    assert "a second run repeats no row of the statement of try 1" in caplog.text
    assert rows() == ROWS


def test_a_statement_that_was_interrupted_after_its_commit_is_not_repeated(rows, folder):
    """Spark calls it cancelled, and the table has its rows."""
    made(folder, INSERT).execute(context(folder, 1))
    left = REMOTE_OPERATION.decode(record_of(folder))
    path = ObjectStoragePath(str(folder / "d" / "r" / "t" / "-1" / "1.json"))
    OperationRecord(context(folder, 1), path).write(
        replace(left, has_succeeded=False, may_have_written=True)
    )
    with pytest.raises(AirflowFailException, match="`again`.`result` has been written to since"):
        made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS
    made(folder, INSERT).execute(context(folder, 3, max_tries=3))
    assert rows() == sorted(ROWS * 2)


def test_a_retry_that_is_stopped_while_it_follows_begins_no_statement(rows, folder, server):
    slow = INSERT.replace("400L", "60000L")
    with first_attempt(folder, slow) as task:
        running(task, folder, server)
        kill(task)
    log = folder / "2.log"
    with first_attempt(folder, slow, 2) as task:
        while "this try waits until it has ended" not in log.read_text():
            assert task.poll() is None, log.read_text()
            time.sleep(0.001)  # it may still import what it needs
        kill(task, signal.SIGTERM)
    assert "the task was stopped, so no statement begins" in log.read_text()
    assert record_of(folder) is None
    time.sleep(5)
    assert rows() == []


def test_a_statement_that_has_succeeded_is_not_run_again_by_a_retry(rows, folder):
    first = made(folder, INSERT).execute(context(folder, 1))
    assert made(folder, INSERT).execute(context(folder, 2)) == first
    assert rows() == ROWS
    made(folder, INSERT).execute(context(folder, 1))  # no retry: it is as old as the record
    assert rows() == sorted(ROWS * 2)


def test_a_statement_that_has_failed_leaves_no_record(rows, folder):
    failing = INSERT.replace("SELECT f.id", "SELECT CAST(raise_error('no') AS INT)")
    with pytest.raises(AirflowException, match="no"):
        made(folder, failing).execute(context(folder, 1))
    assert record_of(folder) is None
    made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS


def test_a_statement_with_several_inserts_that_has_failed_may_have_written(rows, folder):
    """Spark commits one INSERT after the other."""
    failing = (
        "FROM (SELECT f.id FROM again.fact f JOIN again.keys k ON f.p = k.p AND k.id < 3) "
        "INSERT INTO again.result SELECT id, 'once' "
        "INSERT INTO again.result SELECT id, CAST(raise_error('no') AS STRING)"
    )
    with pytest.raises(AirflowException, match="no"):
        made(folder, failing).execute(context(folder, 1))
    assert rows() == ROWS
    with pytest.raises(AirflowFailException, match="`result` has been written to since"):
        made(folder, failing).execute(context(folder, 2))
    assert rows() == ROWS


@pytest.mark.slow
def test_a_statement_on_another_server_is_not_run_again(rows, folder, monkeypatch):
    with first_attempt(folder, INSERT) as task:
        found = begun(task, folder)
        kill(task)
    here = json.dumps({"conn_type": "spark_connect", "host": HOST, "port": free_port()})
    with monkeypatch.context() as other:
        other.setenv("AIRFLOW_CONN_SERVER", here)
        with pytest.raises(AirflowFailException, match=f"begun a statement .* {found.server}, but"):
            made(folder, INSERT).execute(context(folder, 2))
    assert record_of(folder) is not None
    made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS


@pytest.mark.slow
def test_a_record_that_cannot_be_read_is_no_proof_of_an_end(rows, tmp_path):
    folder = tmp_path / "file"
    with folder.mkdir() or first_attempt(folder, INSERT) as task:
        begun(task, folder)
        kill(task)
    file = folder / "d" / "r" / "t" / "-1" / "operation.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    with pytest.raises(AirflowException, match="nothing shows whether the statement"):
        made(folder, INSERT).execute(context(folder, 2))
    file.write_bytes(whole)
    made(folder, INSERT).execute(context(folder, 2))
    assert rows() == ROWS
