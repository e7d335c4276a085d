"""Tasks that wait in the triggerer for a statement on a Spark Connect server.

However often parts die, the table has the rows of one run of the statement.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from datetime import datetime, timedelta, timezone
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    TaskDeferred,
)
from packaging.version import Version

from airflow_hive_opt.documents.remote_operation import REMOTE_OPERATION
from airflow_hive_opt.provider.airflow_compat import TRIGGERS_ARE_KILLED
from tests.versions.installed import SPARK

if Version("4.0") > SPARK or not TRIGGERS_ARE_KILLED:
    pytest.skip("deferral needs PySpark 4.0 and Airflow 3.3", allow_module_level=True)

from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.provider import connect_operations
from airflow_hive_opt.provider.applications import deferral
from airflow_hive_opt.spark.session import connect_following
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.triggers.connect_statement import ConnectStatementTrigger
from tests.operators.connect_attempt import context, first_attempt, made, record_of
from tests.operators.star_tables import make_star
from tests.operators.test_application_trigger import in_its_own_loop
from tests.operators.test_connect_retries import INSERT as OTHER
from tests.operators.test_connect_retries import ROUNDS, ROWS, begun, kill, running, wrote_once
from tests.operators.test_connect_trigger import killed
from tests.services.processes import HOST
from tests.services.spark_connect import spark_connect

INSERT = OTHER.replace("again.", "deferred.")
SLOW = INSERT.replace("400L", "1500L")
ENDLESS = INSERT.replace("400L", "600000L")


def with_tables(session):
    make_star(session, "deferred")
    session.sql("CREATE TABLE deferred.result (id INT, slept STRING) USING parquet")


def rows_of(session):
    session.sql("REFRESH TABLE deferred.result")
    return sorted(row.id for row in session.table("deferred.result").collect())


def connection(port):
    return json.dumps({"conn_type": "spark_connect", "host": HOST, "port": port, "login": "me"})


@pytest.fixture(scope="module")
def server(connect_server):
    with remote_session(connect_server.url, {}) as session:
        with_tables(session)
        yield session
        session.sql("DROP DATABASE deferred CASCADE")


@pytest.fixture
def rows(server, connect_server, monkeypatch):
    """The table's rows, which are none at first."""
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", connection(connect_server.port))
    server.sql("TRUNCATE TABLE deferred.result")
    return lambda: rows_of(server)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(connect_operations, "SECONDS_IN_WORKER", 1.0)
    monkeypatch.setattr(connect_following, "_PAUSE", 0.05)


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "store"
    found.mkdir()
    return found


def deferred(folder, sql, number=1, **fields):
    """The trigger of an attempt and what Airflow keeps of it, made again from what it stores."""
    options = {key: fields.pop(key) for key in ("execution_timeout",) if key in fields}
    with pytest.raises(TaskDeferred) as raised:
        made(folder, sql, deferrable=True, **options).execute(context(folder, number, **fields))
    wait = raised.value
    assert wait.method_name == "resume_statement"
    kept = json.loads(json.dumps([wait.trigger.serialize()[1], wait.kwargs]))
    return ConnectStatementTrigger(**kept[0]), kept[1]


def event_of(trigger):
    async def first():
        return [event.payload async for event in trigger.run()]

    (event,) = in_its_own_loop(first())
    return event


def resumed(folder, sql, kept, event, number=1, *max_tries):
    """Goes on as Airflow does in another process."""
    made_again = made(folder, sql, deferrable=True)
    return made_again.resume_statement(context(folder, number, *max_tries), event=event, **kept)


def test_a_deferred_statement_ends_as_one_for_which_the_worker_waits(rows, folder, tmp_path):
    trigger, kept = deferred(folder, SLOW)
    assert rows() == []
    assert event_of(trigger)["how"] == "succeeded"
    summary = resumed(folder, SLOW, kept, {"how": "succeeded"})
    assert rows() == ROWS
    assert (summary["kept"], summary["total"], summary["reason"]) == (3, 10, "PRUNED")
    other = tmp_path / "other" / "store"
    other.mkdir(parents=True)
    waited = made(other, SLOW).execute(context(other, 1))
    assert rows() == sorted(ROWS * 2)
    of_the_run = {"uri", "seconds", "work", "application_id", "digest", "stages"}
    assert {key: value for key, value in summary.items() if key not in of_the_run} == {
        key: value for key, value in waited.items() if key not in of_the_run
    }


def test_the_worker_empties_the_partition_of_a_deferred_statement_without_rows(
    rows, folder, server
):
    """Spark's dynamic overwrite leaves the old rows there if the query returns none."""
    server.sql("DROP TABLE IF EXISTS deferred.days")
    server.sql("CREATE TABLE deferred.days (id INT, day INT) USING parquet PARTITIONED BY (day)")
    server.sql("INSERT INTO deferred.days VALUES (1, 1), (2, 2)")
    query = SLOW[SLOW.index("SELECT") :]
    overwrite = (
        "INSERT OVERWRITE deferred.days PARTITION (day = 1) "
        f"SELECT id FROM ({query}) WHERE slept = 'never'"
    )
    trigger, kept = deferred(folder, overwrite)
    event = event_of(trigger)
    assert event["how"] == "succeeded"
    server.sql("REFRESH TABLE deferred.days")
    assert server.table("deferred.days").count() == 2
    for number in (1, 2):  # the second time, its first worker has died after that
        summary = resumed(folder, overwrite, kept, event, number)
        server.sql("REFRESH TABLE deferred.days")
        assert [tuple(row) for row in server.table("deferred.days").collect()] == [(2, 2)]
    assert (summary["kept"], summary["total"]) == (3, 10)


def test_a_statement_that_ends_soon_ends_in_its_worker(rows, folder, monkeypatch):
    monkeypatch.setattr(connect_operations, "SECONDS_IN_WORKER", 60.0)
    assert made(folder, INSERT, deferrable=True).execute(context(folder, 1))["kept"] == 3
    assert rows() == ROWS


def test_what_needs_its_worker_waits_there_and_the_log_says_why(rows, folder, capsys):
    select = INSERT.partition("SELECT")
    made(folder, "SELECT" + select[2].replace("400L", "900L"), deferrable=True).execute(
        context(folder, 1)
    )
    assert "keeps its slot while it waits: over Spark Connect, only" in capsys.readouterr().out
    LocalTaskOperator(
        task_id="t",
        sql=INSERT,
        conn_id="server",
        descriptor_path=str(folder),
        local_task="spark",
        deferrable=True,
    ).execute(context(folder, 2))
    assert "a local task reads its keys into the worker" in capsys.readouterr().out
    assert rows() == []


def test_a_deferred_statement_that_fails_fails_its_task_with_sparks_words(rows, folder):
    failing = (
        SLOW.replace("SELECT f.id", "SELECT CAST(raise_error('no ' || slept) AS INT)")
        .replace(
            "AS slept FROM",
            "AS slept2 FROM (SELECT *, java_method('java.lang.Thread', 'sleep', 1500L)"
            " AS slept FROM",
        )
        .replace("deferred.fact f", "deferred.fact) f")
    )
    trigger, kept = deferred(folder, failing)
    event = event_of(trigger)
    assert event == {"how": "failed", "condition": "USER_RAISED_EXCEPTION", "is_refused": False}
    with pytest.raises(AirflowException, match="no ") as raised:
        resumed(folder, failing, kept, event)
    assert not isinstance(raised.value, AirflowFailException)
    assert record_of(folder) is None
    assert rows() == []


def test_a_worker_that_dies_as_it_goes_on_leaves_the_outcome_to_the_next(rows, folder, monkeypatch):
    trigger, kept = deferred(folder, SLOW)
    event = event_of(trigger)

    def dies(*_):
        raise SystemExit

    for place in ("OperationRecord.write", "OperationRecord.read"):
        with monkeypatch.context() as patch:
            patch.setattr(f"airflow_hive_opt.provider.operation_record.{place}", dies)
            with pytest.raises(SystemExit):
                resumed(folder, SLOW, kept, event)
    with monkeypatch.context() as patch:
        patch.setattr(connect_operations.ConnectOperations, "_release", dies)
        with pytest.raises(SystemExit):  # it has ended, so this attempt is not deferred
            made(folder, SLOW, deferrable=True).execute(context(folder, 2))
    # the record says that it has succeeded, so nobody waits
    made(folder, SLOW, deferrable=True).execute(context(folder, 3))
    assert rows() == ROWS


def test_a_retry_of_a_killed_worker_waits_in_the_triggerer_too(rows, folder, server):
    slow = INSERT.replace("400L", "6000L")
    with first_attempt(folder, slow, seconds=60) as task:
        running(task, folder, server, "deferred.result")
        kill(task)
    trigger, kept = deferred(folder, slow, number=2)
    summary = resumed(folder, slow, kept, event_of(trigger), number=2)
    assert summary["uri"].endswith("/1.json")
    assert rows() == ROWS


def retried(folder, number, *max_tries):
    """A retry, which may wait in the triggerer."""
    try:
        made(folder, SLOW, deferrable=True).execute(context(folder, number, *max_tries))
    except TaskDeferred as wait:
        resumed(folder, SLOW, wait.kwargs, event_of(wait.trigger), number, *max_tries)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_however_a_worker_ends_the_statement_writes_once(rows, folder, how, server):
    """Each round ends the first attempt at another moment, also while and after it defers."""
    chance = random.Random(how)
    done = []
    for number in range(ROUNDS):
        own = folder.with_name(f"{number}") / folder.name
        own.mkdir(parents=True)
        with first_attempt(own, SLOW, seconds=1.0) as task:
            begun(task, own)
            time.sleep(chance.random() * 2)
            kill(task, how)
        done.append(wrote_once(partial(retried, own), rows, how))
        server.sql("TRUNCATE TABLE deferred.result")
    assert any(done)


def test_a_triggerer_that_dies_is_followed_by_another(rows, folder):
    trigger, kept = deferred(folder, SLOW)

    async def dies():
        task = asyncio.ensure_future(anext(trigger.run()))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_its_own_loop(dies())
    again = ConnectStatementTrigger(**trigger.serialize()[1])
    killed(again, "deferred")  # another one has taken it over
    assert event_of(again)["how"] == "succeeded"
    resumed(folder, SLOW, kept, {"how": "succeeded"})
    assert rows() == ROWS


def test_a_users_stop_ends_the_statement_and_a_cleared_task_runs(rows, folder):
    trigger, _ = deferred(folder, ENDLESS)
    began = time.monotonic()
    killed(trigger, "failed")
    assert time.monotonic() - began < 10
    assert event_of(trigger)["how"] == "failed"
    assert rows() == []
    made(folder, INSERT).execute(context(folder, 2, max_tries=2))
    assert rows() == ROWS


def test_a_deferred_task_that_is_cleared_first_stops_its_old_statement(rows, folder):
    deferred(folder, ENDLESS)
    made(folder, ENDLESS.replace("600000L", "1L")).execute(context(folder, 2, max_tries=2))
    assert rows() == ROWS


def test_the_execution_timeout_stops_the_statement(rows, folder):
    found = context(folder, 1)
    found["ti"].start_date = datetime.now(timezone.utc)
    with pytest.raises(TaskDeferred) as raised:
        made(folder, ENDLESS, deferrable=True, execution_timeout=timedelta(seconds=20)).execute(
            found
        )
    wait = raised.value
    event = event_of(wait.trigger)
    assert event["how"] == "late"
    with pytest.raises(AirflowException, match="execution_timeout was over"):
        resumed(folder, ENDLESS, wait.kwargs, event)
    assert REMOTE_OPERATION.decode(record_of(folder)).may_have_written
    assert rows() == []


def test_a_worker_that_is_stopped_as_it_defers_stops_the_statement(rows, folder, monkeypatch):
    from airflow_hive_opt.provider.connect_run import ConnectRun

    operator = made(folder, ENDLESS, deferrable=True)
    checks = ConnectRun.raise_if_stopped
    monkeypatch.setattr(
        ConnectRun, "raise_if_stopped", lambda run: (operator.on_kill(), checks(run))
    )
    with pytest.raises(AirflowException, match="was stopped"):
        operator.execute(context(folder, 1))
    assert REMOTE_OPERATION.decode(record_of(folder)).may_have_written
    assert rows() == []


@pytest.mark.parametrize("state", ["failed", None, "deferred"])
def test_a_statement_that_nobody_follows_is_stopped_at_the_end_of_the_process(
    rows, folder, monkeypatch, state
):
    """Airflow refuses to defer a task that a user has stopped meanwhile."""
    from airflow.sdk.listener import get_listener_manager

    get_listener_manager().clear()  # those of other tests
    monkeypatch.setattr(deferral, "state_now", lambda _: state)
    monkeypatch.setattr(deferral, "_SECONDS_UNTIL_FOLLOWED", 0.0)
    trigger, _ = deferred(folder, ENDLESS)
    get_listener_manager().hook.before_stopping(component=None)
    is_followed = state == "deferred"
    assert REMOTE_OPERATION.decode(record_of(folder)).may_have_written is not is_followed
    if is_followed:
        killed(trigger, "failed")
    assert event_of(trigger)["how"] == "failed"
    assert rows() == []


def test_twenty_triggers_follow_statements_of_one_server_in_one_loop(rows, tmp_path):
    each = tmp_path / "0" / "store"
    each.mkdir(parents=True)
    trigger, kept = deferred(each, SLOW)

    async def first(found):
        async for event in found.run():
            return event.payload["how"]

    async def all_of():
        same = [ConnectStatementTrigger(**trigger.serialize()[1]) for _ in range(20)]
        return await asyncio.gather(*map(first, same))

    assert in_its_own_loop(all_of()) == ["succeeded"] * 20
    resumed(each, SLOW, kept, {"how": "succeeded"})
    assert rows() == ROWS


@pytest.mark.slow
def test_a_server_keeps_a_statement_that_a_trigger_follows(tmp_path, folder, monkeypatch):
    """It takes longer than the server keeps one that nobody follows; a second one is lost."""
    own = {
        "spark.connect.execute.manager.detachedTimeout": "3s",
        "spark.connect.execute.manager.maintenanceInterval": "500ms",
        "spark.connect.execute.reattachable.senderMaxStreamDuration": "1s",
        "spark.connect.session.manager.defaultSessionTimeout": "3s",
        "spark.connect.session.manager.maintenanceInterval": "500ms",
    }
    monkeypatch.setattr(connect_following, "_ONE_STREAM", 2.5)
    long = INSERT.replace("400L", "5000L")
    with spark_connect(tmp_path / "server", own) as server:
        monkeypatch.setenv("AIRFLOW_CONN_SERVER", connection(server.port))
        with remote_session(server.url, {}) as session:
            with_tables(session)
        trigger, kept = deferred(folder, long)
        event = event_of(trigger)
        assert event["how"] == "succeeded"
        resumed(folder, long, kept, event)
        with remote_session(server.url, {}) as session:
            assert rows_of(session) == ROWS
        lost = folder.with_name("lost") / "store"
        lost.mkdir(parents=True)
        trigger, kept = deferred(lost, ENDLESS)
        time.sleep(8)  # nobody follows it: no triggerer runs
        event = event_of(trigger)
        assert event["how"] == "ended"
        with pytest.raises(AirflowFailException, match="does not know how"):
            resumed(lost, ENDLESS, kept, event)
        with remote_session(server.url, {}) as session:
            assert rows_of(session) == ROWS
