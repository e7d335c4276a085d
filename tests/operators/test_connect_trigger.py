"""The trigger that follows a statement on a Spark Connect server, against one that answers as told.

The tests in ``test_connect_deferral`` have Spark's own server.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from packaging.version import Version

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.spark.session import connect_following
from airflow_hive_opt.triggers import connect_statement, remote_work
from airflow_hive_opt.triggers.connect_statement import ConnectStatementTrigger
from tests.operators.test_application_trigger import in_its_own_loop, killed_again_and_again
from tests.operators.test_connect_operations import (
    ABANDONED,
    FAILED,
    GONE,
    ID,
    NEVER_THERE,
)
from tests.operators.test_connect_operations import DROPPED as SPARK_DROPS
from tests.services.answering_connect import (
    answering,
    hangs,
    in_turn,
    is_cut,
    is_lacking,
    is_not_there,
    refuses,
    runs,
    succeeds,
)

MANY = 200


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(connect_following, "_PAUSE", 0.01)


@pytest.fixture
def trigger(monkeypatch):
    """Makes a trigger, as Airflow does, for an operation on a server."""

    def made(server, **options):
        port = int(server.url.rpartition(":")[2])
        # to localhost, PySpark sends a token without TLS
        given = {"conn_type": "spark_connect", "host": "localhost", "port": port}
        monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps({**given, "password": "a-token"}))
        first = ConnectStatementTrigger("server", f"localhost:{port}", **asdict(ID), **options)
        path, kept = first.serialize()
        assert path == f"{ConnectStatementTrigger.__module__}.{ConnectStatementTrigger.__name__}"
        text = json.dumps(kept)
        assert "a-token" not in text
        return ConnectStatementTrigger(**json.loads(text))

    return made


def event_of(made):
    async def all_events():
        return [event.payload async for event in made.run()]

    (event,) = in_its_own_loop(all_events())
    return json.loads(json.dumps(event))


def ends_the_stream(context):
    """As a server does after a while; there are more responses."""


DISCONNECTED = refuses("[INVALID_CURSOR.DISCONNECTED] The cursor is invalid.")
DROPPED = refuses("[INVALID_CURSOR.POSITION_NOT_AVAILABLE] The cursor is invalid.")


@pytest.mark.parametrize(
    ("answers", "how"),
    [
        ([succeeds], "succeeded"),
        ([ends_the_stream, ends_the_stream, succeeds], "succeeded"),
        ([DISCONNECTED, succeeds], "succeeded"),
        ([is_not_there, is_lacking, is_not_there, succeeds], "succeeded"),
        ([FAILED], "failed"),
        ([is_not_there, FAILED], "failed"),
        ([refuses("the token has expired", domain="proxy.example"), FAILED], "failed"),
        ([GONE], "ended"),
        ([ABANDONED], "ended"),
        ([NEVER_THERE], "ended"),
        ([DROPPED], "ended"),
    ],
)
def test_a_statement_is_followed_until_the_server_says_that_it_does_not_run(trigger, answers, how):
    with answering(in_turn(*answers)) as server:
        assert event_of(trigger(server))["how"] == how
        assert server.calls.count("reattach") == len(answers)


@pytest.mark.skipif(Version("4.2") > SPARK, reason="the protocol has no status before Spark 4.2")
def test_a_server_that_has_dropped_responses_tells_the_status(trigger):
    with answering(DROPPED, in_turn(runs, runs, GONE)) as server:
        assert event_of(trigger(server))["how"] == "ended"
        assert server.calls == ["reattach", "status"] * 3


def test_a_stream_is_read_for_a_while_only(trigger, monkeypatch):
    monkeypatch.setattr(connect_following, "_ONE_STREAM", 0.2)
    with answering(in_turn(hangs, hangs, succeeds)) as server:
        assert event_of(trigger(server))["how"] == "succeeded"
        assert server.calls == ["reattach", "version", "reattach", "version", "reattach"]


def test_a_server_that_hangs_is_given_up(trigger, monkeypatch):
    """It takes calls, and answers none."""
    for name, seconds in (("_ONE_STREAM", 0.1), ("_AT_ONCE", 0.1), ("_PATIENCE", 0.5)):
        monkeypatch.setattr(connect_following, name, seconds)
    with answering(hangs, most=64) as server:
        server.version = hangs
        assert event_of(trigger(server))["how"] == "lost"


def test_the_deadline_ends_the_wait_for_a_server_that_hangs(trigger, monkeypatch):
    for name, seconds in (("_TIME_TO_STOP", 0.5), ("_AT_ONCE", 0.1)):
        monkeypatch.setattr(connect_following, name, seconds)
    past = (datetime.now(timezone.utc) - timedelta(seconds=1)).isoformat()
    with answering(hangs, most=64) as server:
        server.version = server.interrupt = hangs
        assert event_of(trigger(server, deadline=past))["how"] == "late"
        assert server.calls.count("interrupt") > 1


def test_the_deadline_ends_the_wait_for_a_server_that_is_not_there(trigger, monkeypatch):
    monkeypatch.setattr(connect_following, "_TIME_TO_STOP", 0.5)
    past = (datetime.now(timezone.utc) - timedelta(seconds=1)).isoformat()
    with answering(is_not_there) as server:
        server.interrupt = is_not_there
        assert event_of(trigger(server, deadline=past))["how"] == "late"


@pytest.mark.parametrize("cut", [is_cut, is_not_there], ids=["with a response", "without one"])
def test_a_proxy_that_cuts_each_stream_does_not_hide_the_server(trigger, monkeypatch, cut):
    monkeypatch.setattr(connect_following, "_PATIENCE", 0.0)
    monkeypatch.setattr(connect_following, "_LONGEST_PAUSE", 0.01)
    with answering(in_turn(*[cut] * 20, succeeds)) as server:
        assert event_of(trigger(server))["how"] == "succeeded"
        assert server.calls.count("reattach") == 21


def test_the_pauses_grow_while_the_server_is_not_there(trigger, monkeypatch):
    monkeypatch.setattr(connect_following, "_PATIENCE", 1.0)
    monkeypatch.setattr(connect_following, "_PAUSE", 0.05)
    with answering(is_not_there) as server:
        server.version = is_not_there
        assert event_of(trigger(server))["how"] == "lost"
        assert 2 < server.calls.count("reattach") < 10


def test_a_server_that_stays_silent_is_given_up(trigger, monkeypatch):
    monkeypatch.setattr(connect_following, "_PATIENCE", 0.05)
    with answering(is_not_there) as server:
        server.version = is_not_there
        assert event_of(trigger(server))["how"] == "lost"


def test_a_connection_that_names_another_server_is_no_end(trigger):
    with answering(succeeds) as server:
        made = trigger(server)
        made.server = "elsewhere:15002"
        assert event_of(made)["how"] == "lost"
        assert server.calls == []


def test_what_only_a_worker_has_lets_a_worker_wait_at_once(trigger, monkeypatch, capsys):
    """Such as the connection, a package, or whatever this one raises."""

    def raises(*_):
        raise error

    with answering(succeeds) as server:
        made = trigger(server)
        with monkeypatch.context() as patch:
            patch.delenv("AIRFLOW_CONN_SERVER")
            assert event_of(made) == {"how": "lost"}
        assert "AirflowNotFoundException: " in capsys.readouterr().out
        for error in (ModuleNotFoundError("No module named 'grpc'"), ValueError("something else")):
            with monkeypatch.context() as patch:
                patch.setattr(connect_statement, "_following", raises)
                assert event_of(made) == {"how": "lost"}
            assert f"{type(error).__name__}: {error}" in capsys.readouterr().out
        assert server.calls == []


@pytest.mark.parametrize(
    ("answer", "condition", "is_refused"),
    [
        (FAILED, "DIVIDE_BY_ZERO", False),
        (refuses("no words"), "of another kind", False),
        (refuses("no", kind="java.lang.IllegalStateException"), "UNCLEAR_ERROR", False),
        *((refuses(each), "OPERATION_ORPHANED", False) for each in SPARK_DROPS.values()),
        (
            refuses("[TABLE_OR_VIEW_NOT_FOUND] no", kind="org.apache.spark.sql.AnalysisException"),
            "TABLE_OR_VIEW_NOT_FOUND",
            True,
        ),
    ],
)
def test_the_event_has_the_condition_of_a_failure_but_no_words(
    trigger, answer, condition, is_refused
):
    with answering(answer) as server:
        found = {"how": "failed", "condition": condition, "is_refused": is_refused}
        assert event_of(trigger(server)) == found


@pytest.mark.skipif(Version("4.2") > SPARK, reason="the protocol has no status before Spark 4.2")
@pytest.mark.parametrize(
    ("state", "how"), [("SUCCEEDED", "succeeded"), ("FAILED", "failed"), ("CANCELLED", "failed")]
)
def test_the_status_tells_how_a_statement_has_ended(trigger, state, how):
    with answering(DROPPED, lambda context: runs(context, state)) as server:
        assert event_of(trigger(server))["how"] == how


@pytest.mark.parametrize(("last", "how"), [(FAILED, "late"), (succeeds, "succeeded")])
def test_a_statement_is_interrupted_at_the_deadline(trigger, last, how):
    def interrupted(context):
        server.reattach = last

    past = (datetime.now(timezone.utc) + timedelta(seconds=1)).isoformat()
    with answering(hangs) as server:
        answer = server.interrupt
        server.interrupt = lambda context: (interrupted(context), answer(context))[1]
        assert event_of(trigger(server, deadline=past))["how"] == how
        assert server.calls == ["reattach", "version", "interrupt", "reattach"]


def test_a_statement_that_does_not_stop_at_the_deadline_is_given_up(trigger, monkeypatch):
    monkeypatch.setattr(connect_following, "_TIME_TO_STOP", 0.5)
    past = (datetime.now(timezone.utc) - timedelta(seconds=1)).isoformat()
    with answering(hangs) as server:
        assert event_of(trigger(server, deadline=past))["how"] == "late"
        assert server.calls.count("interrupt") == 1


def killed(made, state):
    """Airflow takes the trigger away while the task has this state; an exception is raised."""
    made.task_instance = SimpleNamespace(task_id="t")

    async def state_of_task(_):
        if isinstance(state, Exception):
            raise state
        return state

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_work, "state_of_task", state_of_task)
        in_its_own_loop(made.on_kill())


@pytest.mark.parametrize("state", ["failed", "success", "scheduled", None])
def test_a_users_stop_interrupts_the_statement(trigger, state):
    with answering(in_turn(is_not_there, FAILED)) as server:
        killed(trigger(server), state)
        assert server.calls == ["interrupt", "reattach", "version", "interrupt", "reattach"]


@pytest.mark.parametrize("state", ["deferred", RuntimeError("no answer")])
def test_another_triggerer_that_takes_over_leaves_the_statement_alone(trigger, state, monkeypatch):
    monkeypatch.setattr(remote_work, "_SECONDS_TO_ASK", 0.0)
    with answering(succeeds) as server:
        killed(trigger(server), state)
        assert server.calls == []


def test_a_stop_goes_on_although_airflow_cancels_it_again_and_again(trigger):
    with answering(FAILED) as server:
        killed_again_and_again(trigger(server))
        assert server.calls == ["interrupt", "reattach"]


def test_a_stop_asks_airflow_again_if_it_does_not_tell_the_state(trigger, monkeypatch):
    monkeypatch.setattr(remote_work, "_PAUSE", 0.01)
    states = [RuntimeError("no answer"), RuntimeError("no answer"), "failed"]

    async def state_of_task(_):
        if isinstance(state := states.pop(0), Exception):
            raise state
        return state

    monkeypatch.setattr(remote_work, "state_of_task", state_of_task)
    with answering(FAILED) as server:
        made = trigger(server)
        made.task_instance = SimpleNamespace(task_id="t")
        in_its_own_loop(made.on_kill())
        assert server.calls == ["interrupt", "reattach"]


def test_a_stop_that_can_not_reach_the_server_says_why(trigger, monkeypatch, capsys):
    with answering(FAILED) as server:
        made = trigger(server)
        monkeypatch.delenv("AIRFLOW_CONN_SERVER")
        killed(made, "failed")
        assert server.calls == []
    assert "may still run: The conn_id" in capsys.readouterr().out


def test_a_stop_that_has_no_effect_is_given_up(trigger, monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.triggers.connect_statement.SECONDS_TO_STOP", 1.0)
    with answering(hangs) as server:
        began = time.monotonic()
        killed(trigger(server), "failed")
        assert time.monotonic() - began < 20
        assert server.calls[0] == "interrupt"


def test_many_triggers_wait_in_one_loop_that_none_of_them_blocks(trigger):
    """The server holds each answer back until all have asked: a blocking call would never end.

    The work of a turn of the loop is counted in seconds of its processor, whatever else runs. It is
    without the garbage collector's look at all that other tests have left.
    """
    together = threading.Barrier(MANY)
    turns = []

    class Loop(asyncio.SelectorEventLoop):
        def _run_once(self):
            before = time.thread_time()
            super()._run_once()
            turns.append(time.thread_time() - before)

    async def first(made):
        async for event in made.run():
            return event.payload["how"]

    async def all_of(triggers):
        return await asyncio.gather(*map(first, triggers))

    def answer(context):
        together.wait(timeout=120)
        return succeeds(context)

    with answering(answer, most=MANY) as server:
        loop = Loop()
        gc.freeze()
        try:
            found = loop.run_until_complete(all_of([trigger(server) for _ in range(MANY)]))
        finally:
            gc.unfreeze()
            loop.close()
        assert len(server.calls) == MANY
    assert found == ["succeeded"] * MANY
    assert max(turns) < 0.5, sorted(turns)[-5:]
