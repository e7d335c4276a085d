"""The trigger that follows an application, against a stand-in for the clusters' REST APIs."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from airflow_hive_opt.provider.applications import cluster, following
from airflow_hive_opt.triggers import application, remote_work
from airflow_hive_opt.triggers.application import ApplicationTrigger
from tests.operators.rest_servers import rest_servers

KINDS = ("yarn", "standalone")
MANY = 200


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(following, "_SECONDS_BETWEEN_KILLS", 0.01)


def trigger(kind, servers, **options):
    return ApplicationTrigger(kind, [servers.address], "app_1", 0.01, **options)


def in_its_own_loop(work):
    """What a coroutine returns; this thread may already have the loop of a browser."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def event_of(made):
    async def first():
        try:
            return [event.payload async for event in made.run()]
        finally:
            await cluster.close()

    (event,) = in_its_own_loop(first())
    return event


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("last", "how"), [("FINISHED", "succeeded"), ("FAILED", "failed"), ("KILLED", "failed")]
)
def test_the_event_says_how_the_application_ended(kind, last, how):
    with rest_servers("SUBMITTED", "RUNNING", "RUNNING", last) as servers:
        event = event_of(trigger(kind, servers))
    assert event["how"] == how
    assert event["message"].startswith(f"app_1: {last}")
    assert len(servers.asked) == 4
    assert servers.kills == 0


def test_the_message_has_the_reason_of_yarn():
    with rest_servers("FAILED") as servers:
        event = event_of(trigger("yarn", servers))
    assert event["message"] == "app_1: FAILED, FAILED: its words"


def test_a_trigger_is_made_again_from_what_airflow_keeps():
    with rest_servers("FINISHED") as servers:
        path, kept = trigger("yarn", servers).serialize()
        assert path == f"{ApplicationTrigger.__module__}.{ApplicationTrigger.__name__}"
        event = event_of(ApplicationTrigger(**kept))
    assert event == {"how": "succeeded", "message": "app_1: FINISHED"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_does_not_answer_for_a_while_is_asked_again(kind, caplog):
    with rest_servers(503, 500, None, "RUNNING", 502, "FINISHED") as servers:
        made = trigger(kind, servers)
        made.log.propagate = True
        event = event_of(made)
    assert event["how"] == "succeeded"
    assert len(servers.asked) == 6


def test_a_standby_master_is_not_the_end_and_the_active_one_is_asked():
    with rest_servers("STANDBY") as standby, rest_servers("RUNNING", "FINISHED") as active:
        made = ApplicationTrigger(
            "standalone", ["http://127.0.0.1:1", standby.address, active.address], "d", 0.01
        )
        assert event_of(made)["how"] == "succeeded"
    assert len(active.asked) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_an_application_that_its_cluster_does_not_know_may_still_run(kind):
    with rest_servers("RUNNING", None) as servers:
        event = event_of(trigger(kind, servers))
    assert event["how"] == "lost"
    assert len(servers.asked) == 4  # unknown three times


def test_a_cluster_that_stays_silent_is_given_up(monkeypatch):
    monkeypatch.setattr(following, "_PATIENCE", 0.05)
    event = event_of(ApplicationTrigger("yarn", ["http://127.0.0.1:1"], "app_1", 0.01))
    assert event["how"] == "lost"
    assert "no answer" in event["message"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_application_is_stopped_at_the_deadline(kind):
    past = (datetime.now(timezone.utc) - timedelta(seconds=1)).isoformat()
    with rest_servers("RUNNING") as servers:
        event = event_of(trigger(kind, servers, deadline=past))
        assert servers.kills == 1
    assert event["how"] == "late"


def test_an_application_that_ends_well_at_the_deadline_has_succeeded():
    past = (datetime.now(timezone.utc) - timedelta(seconds=1)).isoformat()
    with rest_servers("RUNNING", "FINISHED") as servers:
        event = event_of(trigger("yarn", servers, deadline=past))
    assert event["how"] == "succeeded"


def killed(made, state):
    """Airflow takes the trigger away while the task has this state; an exception is raised."""
    made.task_instance = SimpleNamespace(task_id="t")

    async def state_of_task(_):
        if isinstance(state, Exception):
            raise state
        return state

    async def run():
        try:
            await made.on_kill()
        finally:
            await cluster.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_work, "state_of_task", state_of_task)
        in_its_own_loop(run())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["failed", "success", "scheduled", None])
def test_a_users_stop_stops_the_application(kind, state):
    with rest_servers("RUNNING") as servers:
        killed(trigger(kind, servers), state)
        assert servers.kills == 1
        assert servers.states == ["KILLED"]
        assert servers.asked[-1][0] == "GET"  # it has seen the end


@pytest.mark.parametrize("state", ["deferred", RuntimeError("no answer")])
def test_another_triggerer_that_takes_over_leaves_the_application_alone(state, monkeypatch):
    monkeypatch.setattr(remote_work, "_SECONDS_TO_ASK", 0.0)
    with rest_servers("RUNNING") as servers:
        killed(trigger("yarn", servers), state)
        assert servers.asked == []


def test_a_stop_is_tried_again_until_the_application_has_ended():
    with rest_servers("RUNNING", "RUNNING", 503, "RUNNING", "KILLED") as servers:
        servers.kills_work = False
        killed(trigger("yarn", servers), "failed")
        assert servers.kills == 3


def test_a_stop_that_has_no_effect_is_given_up(monkeypatch):
    monkeypatch.setattr(application, "SECONDS_TO_STOP", 1.0)
    with rest_servers("RUNNING") as servers:
        servers.kills_work = False
        killed(trigger("yarn", servers), "failed")
        assert servers.kills > 1


def test_many_triggers_wait_in_one_loop_that_none_of_them_blocks():
    """The server holds each answer back until all have asked: a blocking call would never end.

    The work of a turn of the loop is counted in seconds of its processor, whatever else runs.
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
        found = await asyncio.gather(*map(first, triggers))
        await cluster.close()
        return found

    logging.getLogger("httpx").setLevel(logging.WARNING)
    with rest_servers(*["RUNNING"] * MANY, "FINISHED") as servers:
        servers.before_answer = lambda: len(servers.asked) > MANY or together.wait(timeout=60)
        loop = Loop()
        try:
            each_second = [
                ApplicationTrigger("yarn", [servers.address], "app_1", 1.0) for _ in range(MANY)
            ]
            found = loop.run_until_complete(all_of(each_second))
        finally:
            loop.close()
    assert found == ["succeeded"] * MANY
    assert max(turns) < 0.5, sorted(turns)[-5:]


def killed_again_and_again(made):
    """Airflow cancels the stop, as its triggerer does each second until the trigger has ended."""
    made.task_instance = SimpleNamespace(task_id="t")

    async def state_of_task(_):
        await asyncio.sleep(0.3)
        return "failed"

    async def run():
        killing = asyncio.ensure_future(made.on_kill())
        for _ in range(10):
            await asyncio.sleep(0.05)
            killing.cancel()
        while remote_work._STOPPING:
            await asyncio.sleep(0.01)
        await cluster.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_work, "state_of_task", state_of_task)
        in_its_own_loop(run())


def test_a_stop_goes_on_although_airflow_cancels_it_again_and_again():
    with rest_servers("RUNNING") as servers:
        killed_again_and_again(trigger("yarn", servers))
        assert servers.kills == 1
