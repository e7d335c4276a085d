"""What a task does about the application of an earlier attempt of it; see test_deferral.py."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    AirflowFailException,
)
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Outcome, Status, read_job
from airflow_hive_opt.provider.applications import earlier
from tests.operators.deferred import (
    ENDED,
    ID,
    Store,
    connect,
    deferred,
    follows,
    operator,
    resumed,
    write,
)
from tests.operators.rest_servers import rest_servers
from tests.operators.test_submission import context

pytestmark = pytest.mark.usefixtures("quick")


@follows
def test_a_retry_follows_the_application_of_the_attempt_before_it(jobs, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        wait = deferred(operator(tmp_path), found := context(store=store, try_number=2))
        assert wait.trigger.application_id == ID
        write(jobs[0])
        summary = resumed(operator(tmp_path), found, wait, ENDED)
        assert summary["uri"] == str(tmp_path / "d/r/t/-1/1.json")
        assert servers.kills == 0
    assert len(jobs) == 1


@follows
@pytest.mark.parametrize("ended", ["FAILED", "KILLED"])
def test_a_retry_submits_again_once_the_application_has_ended(jobs, monkeypatch, tmp_path, ended):
    store = Store()
    with rest_servers(ended) as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        wait = deferred(operator(tmp_path), context(store=store, try_number=2))
        assert wait.trigger.application_id == "application_1_2"
    assert len({job.token for job in jobs}) == 2


@follows
@pytest.mark.parametrize(
    "again",
    [
        {"attempt": {"max_tries": 2}},  # it is cleared
        {"options": {"sql": "SELECT 2"}},
        {"options": {"durable": False}},
    ],
)
def test_an_application_that_is_not_followed_is_stopped_before_the_next_one(
    jobs, monkeypatch, tmp_path, again
):
    store = Store()
    options, attempt = again.get("options", {}), again.get("attempt", {})
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        found = context(store=store, try_number=2, **attempt)
        wait = deferred(operator(tmp_path, **options), found)
        assert servers.kills == 1
        assert servers.states == ["KILLED"]
        assert wait.trigger.application_id == "application_1_2"
    assert len(jobs) == 2


@follows
def test_an_application_that_can_not_be_stopped_keeps_the_next_one_from_starting(
    jobs, monkeypatch, tmp_path
):
    monkeypatch.setattr(earlier, "_SECONDS_TO_END", 0.05)
    store = Store()
    with rest_servers("RUNNING") as servers:
        servers.kills_work = False
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        with pytest.raises(AirflowFailException, match=f"{ID} of an earlier attempt may still run"):
            operator(tmp_path).execute(context(store=store, try_number=2, max_tries=2))
        write(jobs[0])  # it has ended, whatever its cluster says
        deferred(operator(tmp_path), context(store=store, try_number=3, max_tries=3))
    assert len(jobs) == 2


@follows
def test_a_driver_that_has_not_begun_when_a_retry_submits_never_begins(
    jobs, dies, monkeypatch, tmp_path
):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        dies(operator(tmp_path), context(store=store))
        deferred(operator(tmp_path), context(store=store, try_number=2))
    first, second = jobs
    with pytest.raises(claims.Superseded):
        claims.begin(UPath(first.path), first.token, ID)
    claims.begin(UPath(second.path), second.token, "application_1_2")


@follows
@pytest.mark.parametrize("id_", [ID, "driver-20261129052333-0000"])
def test_a_driver_that_has_begun_is_followed_by_its_own_word(
    jobs, dies, monkeypatch, tmp_path, id_
):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        dies(operator(tmp_path), context(store=store))
        claims.begin(UPath(jobs[0].path), jobs[0].token, id_)
        wait = deferred(operator(tmp_path), context(store=store, try_number=2))
        assert wait.trigger.application_id == id_
        assert wait.kwargs["submitted"]["token"] == jobs[0].token
    assert len(jobs) == 1


@follows
def test_the_outcome_counts_of_a_driver_whose_id_nobody_knows(jobs, dies, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        dies(operator(tmp_path), context(store=store))
        claims.begin(UPath(jobs[0].path), jobs[0].token, "app-1")
        with pytest.raises(AirflowFailException, match=r"\(app-1\), which may still run"):
            operator(tmp_path).execute(context(store=store, try_number=2))
        write(jobs[0])
        summary = operator(tmp_path).execute(context(store=store, try_number=3))
        assert summary["uri"] == str(tmp_path / "d/r/t/-1/1.json")
    assert len(jobs) == 1


@follows
def test_another_tasks_clear_changes_nothing(jobs, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        found = context(store=store, try_number=2, clear_number=1)
        assert deferred(operator(tmp_path), found).trigger.application_id == ID
        write(jobs[0])
        servers.states = ["FINISHED"]
        found = context(store=store, try_number=3, clear_number=2)
        assert operator(tmp_path).execute(found)["kept"] == 1
        assert servers.kills == 0
    assert len(jobs) == 1


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_a_task_that_nobody_follows_has_the_claim(monkeypatch, tmp_path, mode):
    """The one before it was followed, and left its claim."""
    began = []

    def submit(hook, *_, **__):
        job = read_job(UPath(hook._application_args[0]))
        claims.begin(UPath(job.path), job.token, None)
        began.append(job)
        write(job)

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "yarn").touch(0o755)  # by which older Spark providers stop applications
    connect(monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"), mode=mode)
    made = operator(tmp_path, deferrable=False)
    path = UPath(made.attempt_path(found := context(store=Store())))
    claims.take(path, "of an earlier attempt", "another cause")
    assert made.execute(found)["kept"] == 1
    assert len(began) == 1


@follows
def test_a_task_that_is_not_followed_any_more_stops_what_was(jobs, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        begun = []

        def submit(hook, *_, **__):
            begun.append(servers.states)
            write(read_job(UPath(hook._application_args[0])))

        monkeypatch.setattr(SparkSubmitHook, "submit", submit)
        found = context(store=store, try_number=2, max_tries=2)
        assert operator(tmp_path, deferrable=False).execute(found)["kept"] == 1
    assert begun == [["KILLED"]]


@follows
def test_a_driver_with_another_descriptor_path_never_begins(jobs, dies, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        dies(operator(tmp_path / "old"), context(store=store))
        deferred(operator(tmp_path / "new"), context(store=store, try_number=2))
    first, second = jobs
    with pytest.raises(claims.Superseded):
        claims.begin(UPath(first.path), first.token, ID)
    claims.begin(UPath(second.path), second.token, "application_1_2")


@follows
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_cluster_that_forgets_an_application_for_a_moment(jobs, monkeypatch, tmp_path, has_begun):
    """A restarted master does not know it until its worker comes back; a driver that has lost its
    claim before it began can't do harm."""
    store = Store()
    with rest_servers(None, None, None, None, "RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        if has_begun:
            claims.begin(UPath(jobs[0].path), jobs[0].token, ID)
        deferred(operator(tmp_path), context(store=store, try_number=2, max_tries=2))
        assert servers.kills == has_begun
    assert len(jobs) == 2


@follows
def test_an_application_that_its_cluster_has_not_known_for_long_has_ended(
    jobs, monkeypatch, tmp_path
):
    monkeypatch.setattr(earlier, "_SECONDS_UNKNOWN", 0.1)
    store = Store()
    with rest_servers(None) as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        claims.begin(UPath(jobs[0].path), jobs[0].token, ID)
        deferred(operator(tmp_path), context(store=store, try_number=2, max_tries=2))
    assert len(jobs) == 2


@follows
def test_a_retry_submits_again_after_a_failed_application_that_its_cluster_forgot(
    jobs, monkeypatch, tmp_path
):
    store = Store()
    with rest_servers(None) as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        write(jobs[0], Outcome(Status.FAILED, "its words"))
        wait = deferred(operator(tmp_path), context(store=store, try_number=2))
    assert wait.trigger.application_id == "application_1_2"


UNCLEAR = Outcome(Status.FAILED, "its words", may_have_written=True)


def began_since(job):
    """Since when its driver learns that those before it may have written; and when it begins."""
    path = UPath(job.path)
    return claims.begin(path, job.token, ID), claims.begun(path, job.token).began


@follows
@pytest.mark.parametrize(
    ("begins", "outcome", "attempt", "is_told"),
    [
        (True, None, {}, True),
        (True, UNCLEAR, {}, True),
        (True, Outcome(Status.FAILED, "its words"), {}, False),
        (True, None, {"max_tries": 2}, False),  # it is cleared
        (False, None, {}, False),
    ],
)
def test_a_retrys_driver_learns_that_the_one_before_may_have_written(
    jobs, monkeypatch, tmp_path, begins, outcome, attempt, is_told
):
    store = Store()
    with rest_servers("KILLED") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        began = began_since(jobs[0])[1] if begins else None
        if outcome is not None:
            write(jobs[0], outcome)
        deferred(operator(tmp_path), context(store=store, try_number=2, **attempt))
    assert began_since(jobs[1])[0] == (began if is_told else None)


@follows
@pytest.mark.parametrize("begins", [True, False])
def test_a_third_attempts_driver_learns_it_of_the_first(jobs, monkeypatch, tmp_path, begins):
    """Also if the second one has begun, which may have looked at the table too early."""
    store = Store()
    with rest_servers("KILLED") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path), context(store=store))
        _, first = began_since(jobs[0])
        deferred(operator(tmp_path), context(store=store, try_number=2))
        if begins:
            began_since(jobs[1])
        deferred(operator(tmp_path), context(store=store, try_number=3))
    assert began_since(jobs[2])[0] == first


@follows
def test_it_learns_it_of_an_application_that_was_stopped_for_it(jobs, monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        deferred(operator(tmp_path, durable=False), context(store=store))
        _, first = began_since(jobs[0])
        deferred(operator(tmp_path, durable=False), context(store=store, try_number=2))
        assert servers.kills == 1
    assert began_since(jobs[1])[0] == first


def test_it_learns_it_in_client_mode_from_the_storage_alone(monkeypatch, tmp_path):
    """Airflow keeps nothing of such an application."""
    seen = []

    def submit(hook, *_, **__):
        job = read_job(UPath(hook._application_args[0]))
        seen.append(began_since(job))
        if len(seen) == 1:
            raise SystemExit  # the worker dies, and the driver with it
        write(job)

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "yarn").touch(0o755)  # by which older Spark providers stop applications
    connect(monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"), mode="client")
    with pytest.raises(SystemExit):
        operator(tmp_path, deferrable=False).execute(context(store=Store()))
    operator(tmp_path, deferrable=False).execute(context(store=Store(), try_number=2))
    (_, first), (since, _) = seen
    assert since == first
