"""A task that is stopped around its submission leaves no application; see test_deferral.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException

from airflow_hive_opt.provider.applications import deferral, following, standalone
from airflow_hive_opt.provider.connections import Deployment
from tests.operators.deferred import Store, connect, deferred, follows, operator, resumed, write
from tests.operators.rest_servers import rest_servers
from tests.operators.test_application_trigger import event_of
from tests.operators.test_submission import SUMMARY, context

pytestmark = pytest.mark.usefixtures("quick")


@follows
@pytest.mark.parametrize("kills_work", [True, False])
def test_a_driver_on_a_standalone_cluster_is_stopped_before_the_task_waits_for_it(
    monkeypatch, tmp_path, capsys, kills_work
):
    monkeypatch.setattr(following, "SECONDS_TO_STOP", 60.0 if kills_work else 0.05)
    with rest_servers("RUNNING") as servers:
        servers.kills_work = kills_work
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        deferred(made := operator(tmp_path), context(store=Store()))
        made.on_kill()
        assert servers.kills > 0
    assert ("driver-1 may still run" in capsys.readouterr().out) is not kills_work


@follows
def test_a_task_that_is_stopped_before_it_submits_submits_nothing(monkeypatch, tmp_path):
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        made = operator(tmp_path)
        made.on_kill()
        with pytest.raises(AirflowException, match="the task was stopped"):
            made.execute(context(store=Store()))
        assert servers.created == []


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_a_stop_in_the_middle_of_a_request_to_airflow_ends(monkeypatch, tmp_path, mode):
    """Airflow calls ``on_kill`` in the thread that waits for the answer, with a lock on it."""
    asked = []
    get = SparkSubmitHook.get_connection

    def get_connection(conn_id):
        asked.append(conn_id)
        before = len(asked)
        made.on_kill()
        assert len(asked) == before, "a request in a request"
        return get(conn_id)

    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077", mode=mode)
        made = operator(tmp_path)
        monkeypatch.setattr(SparkSubmitHook, "get_connection", staticmethod(get_connection))
        monkeypatch.setattr(SparkSubmitHook, "submit", lambda *_: asked.append("submitted"))
        with pytest.raises(AirflowException, match="the task was stopped"):
            made.execute(context(store=Store()))
        assert servers.created == []
    assert asked and "submitted" not in asked


@follows
def test_a_stop_of_an_application_on_yarn_asks_airflow_for_nothing(monkeypatch, tmp_path):
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        made = operator(tmp_path, deferrable=False)
        made._deployment, made._on_cluster = Deployment("submitted"), SimpleNamespace(stop=bool)
        made._hook = made._get_hook()
        made._hook._yarn_application_id = "app_1"
        no_request = staticmethod(lambda _: pytest.fail("a request"))
        monkeypatch.setattr(SparkSubmitHook, "get_connection", no_request)
        made.on_kill()
        assert servers.kills == 1


@follows
def test_a_stop_after_the_application_has_ended_keeps_its_outcome(jobs, monkeypatch, tmp_path):
    with rest_servers("RUNNING", "FINISHED") as servers:
        connect(monkeypatch, servers)
        found = context(store=Store())
        wait = deferred(operator(tmp_path), found)
        (job,) = jobs
        write(job)
        wait.trigger.poll_interval = 0.01
        event = event_of(wait.trigger)
        made = operator(tmp_path)
        get = SparkSubmitHook.get_connection

        def get_connection(conn_id):
            made.on_kill()
            return get(conn_id)

        monkeypatch.setattr(SparkSubmitHook, "get_connection", staticmethod(get_connection))
        assert resumed(made, found, wait, event)["kept"] == SUMMARY["kept"]
    assert made._is_stopped


@follows
def test_a_driver_that_starts_while_its_task_is_stopped_is_stopped_too(monkeypatch, tmp_path):
    submit = standalone.submit

    def stopped_meanwhile(*arguments):
        made.on_kill()
        return submit(*arguments)

    monkeypatch.setattr(standalone, "submit", stopped_meanwhile)
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        made = operator(tmp_path)
        with pytest.raises(AirflowException, match="the task was stopped"):
            made.execute(context(store=Store()))
        assert len(servers.created) == 1
        assert servers.states == ["KILLED"]


@follows
@pytest.mark.parametrize(
    ("states", "stops"),
    [
        *((["failed"], True), (["restarting"], True), ([None], True)),
        (["deferred", "deferred", "failed"], True),  # before a triggerer has its trigger
        (["deferred", "queued"], False),
        *((["deferred"], False), (["running"], False), ([RuntimeError("no answer")], False)),
    ],
)
def test_an_application_that_nobody_follows_is_stopped_at_the_end_of_the_process(
    monkeypatch, tmp_path, states, stops
):
    """Airflow refuses to defer a task that a user has stopped meanwhile."""
    from airflow.sdk.listener import get_listener_manager

    def state_now(_):
        state = states.pop(0) if len(states) > 1 else states[0]
        if isinstance(state, Exception):
            raise state
        return state

    get_listener_manager().clear()  # those of other tests
    monkeypatch.setattr(deferral, "state_now", state_now)
    monkeypatch.setattr(deferral, "_PAUSE", 0.01)
    monkeypatch.setattr(deferral, "_SECONDS_UNTIL_FOLLOWED", 0.5)
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        deferred(operator(tmp_path), context(store=Store()))
        for _ in range(2):
            get_listener_manager().hook.before_stopping(component=None)
        assert servers.kills == stops
