"""Tasks that wait for their application in the triggerer, and what their next attempts do.

spark-submit is replaced, and a stand-in answers as the clusters' REST APIs. The tests in tests/e2e
and tests/yarn have clusters.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    DAG,
    AirflowException,
    AirflowFailException,
)
from upath import UPath

from airflow_hive_opt.decorators.map_join_prune import map_join_prune_task
from airflow_hive_opt.documents.job import Job, Outcome, Status, read_job, write_outcome
from airflow_hive_opt.operators.local_task import LocalTaskOperator
from airflow_hive_opt.operators.map_join import MapJoinOperator
from airflow_hive_opt.provider.applications.cluster import NoAnswer
from airflow_hive_opt.provider.spark_provider import RESUMES
from airflow_hive_opt.task_groups.map_join_prune import MapJoinPruneTaskGroup
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
from tests.operators.test_application_trigger import event_of
from tests.operators.test_submission import DONE, SUMMARY, context

pytestmark = pytest.mark.usefixtures("quick")


@follows
def test_a_deferred_task_ends_as_one_that_waits(jobs, monkeypatch, tmp_path):
    pushed = []
    with rest_servers("RUNNING", "FINISHED") as servers:
        connect(monkeypatch, servers)
        found = context(store=Store())
        found["ti"].xcom_push = lambda key, value: pushed.append((key, value))
        wait = deferred(operator(tmp_path), found)
        (job,) = jobs
        assert pushed == []
        write(job)
        wait.trigger.poll_interval = 0.01
        summary = resumed(operator(tmp_path), found, wait, event_of(wait.trigger))
    after_waiting, pushed = pushed, []
    found["ti"].xcom_push = lambda key, value: pushed.append((key, value))
    waiting = operator(tmp_path, deferrable=False)
    monkeypatch.setattr(
        SparkSubmitHook,
        "submit",
        lambda hook, *_: write(read_job(UPath(hook._application_args[0]))),
    )
    assert waiting.execute(found) == summary
    assert pushed == after_waiting
    assert after_waiting != []


@follows
def test_the_trigger_has_all_that_it_needs_to_ask(jobs, monkeypatch, tmp_path):
    started = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        found = context(store=Store())
        found["ti"].start_date = started
        options = {"execution_timeout": timedelta(hours=2), "status_poll_interval": 30}
        wait = deferred(operator(tmp_path, **options), found)
        assert servers.asked == []
    _, kept = wait.trigger.serialize()
    assert kept == {
        "cluster": "yarn",
        "addresses": [servers.address],
        "application_id": ID,
        "poll_interval": 30.0,
        "deadline": "2026-01-01T02:00:00+00:00",
    }


@follows
@pytest.mark.parametrize(
    ("event", "outcome", "error", "said"),
    [
        ("failed", None, AirflowException, "in words.*wrote no outcome"),
        ("late", None, AirflowException, "in words.*wrote no outcome"),
        ("lost", None, AirflowFailException, "in words. It may still run"),
        ("succeeded", None, AirflowFailException, "the statement may have run"),
        ("failed", Outcome(Status.FAILED, "its words"), AirflowException, "^its words$"),
        ("lost", Outcome(Status.FAILED, "its words"), AirflowException, "^its words$"),
        ("failed", Outcome(Status.REFUSED, "its words"), AirflowFailException, "^its words$"),
        ("failed", DONE, None, ""),
        ("lost", DONE, None, ""),
    ],
)
def test_only_an_application_that_has_ended_is_tried_again(
    jobs, monkeypatch, tmp_path, event, outcome, error, said
):
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        wait = deferred(operator(tmp_path), found := context(store=Store()))
    if outcome is not None:
        write(jobs[0], outcome)
    made = operator(tmp_path)
    if error is None:
        assert resumed(made, found, wait, {"how": event, "message": "in words"})["kept"] == 1
        return
    with pytest.raises(AirflowException, match=said) as raised:
        resumed(made, found, wait, {"how": event, "message": "in words"})
    assert isinstance(raised.value, AirflowFailException) is (error is AirflowFailException)


@follows
def test_the_secrets_of_parameters_are_masked_after_the_wait(jobs, monkeypatch, tmp_path):
    """Airflow goes on in another process, which has not masked them before."""
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        wait = deferred(operator(tmp_path), found := context(store=Store()))
    write(jobs[0], Outcome(Status.FAILED, "The value 'clusters-secret' is wrong"))
    made = operator(tmp_path, parameters={"password": "clusters-secret"})
    with pytest.raises(AirflowException, match=r"The value '\*\*\*' is wrong"):
        resumed(made, found, wait, ENDED)


@follows
def test_an_outcome_of_another_attempt_does_not_count(jobs, monkeypatch, tmp_path):
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        wait = deferred(operator(tmp_path), found := context(store=Store()))
    write_outcome(replace(DONE, token="other"), UPath(jobs[0].path))
    with pytest.raises(AirflowFailException, match="belongs to another application"):
        resumed(operator(tmp_path), found, wait, ENDED)


@follows
def test_the_tasks_of_a_group_defer(jobs, monkeypatch, tmp_path):
    options = {"conn_id": "cluster", "deferrable": True, "descriptor_path": str(tmp_path)}
    with DAG("d"):
        group = MapJoinPruneTaskGroup("g", sql="SELECT 1", **options)
    assert group.local_task.deferrable
    assert group.map_join.deferrable
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        wait = deferred(group.local_task, found := context(store=Store()))
    write(jobs[0])
    summary = resumed(group.local_task, found, wait, ENDED)
    assert (summary["uri"], summary["prune_only"]) == (str(tmp_path / "d/r/t/-1/1.json"), False)


@follows
def test_a_decorated_function_defers_and_is_called_once(jobs, monkeypatch, tmp_path):
    calls = []

    @map_join_prune_task(conn_id="cluster", deferrable=True, descriptor_path=str(tmp_path))
    def statement():
        calls.append("called")
        return "SELECT 2"

    with DAG("d"):
        made = statement().operator
    with DAG("d"):
        again = statement().operator  # in the process that goes on
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        wait = deferred(made, found := context(store=Store()))
    write(jobs[0])
    assert resumed(again, found, wait, ENDED)["kept"] == 1
    assert jobs[0].sql == again.sql == "SELECT 2"  # lineage reads the latter
    assert calls == ["called"]


@follows
def test_a_map_join_has_its_local_tasks_descriptor_after_the_wait(jobs, monkeypatch, tmp_path):
    digest = Job("SELECT 1").query_digest
    output = {"uri": str(tmp_path / "keys.json"), "digest": "x", "query_digest": digest}
    summary = {**SUMMARY, "digest": "x"}
    with rest_servers("RUNNING") as servers:
        connect(monkeypatch, servers)
        options = {"cls": MapJoinOperator, "descriptor": output}
        wait = deferred(operator(tmp_path, **options), found := context(store=Store()))
        write(jobs[0], replace(DONE, summary=summary))
        assert resumed(operator(tmp_path, **options), found, wait, ENDED)["uri"] == output["uri"]


@pytest.mark.parametrize(
    ("connection", "why"),
    [
        ({"host": "yarn", "mode": "client"}, "the driver runs in the worker"),
        ({"host": "spark://m:7077", "mode": "client"}, "the driver runs in the worker"),
    ],
)
def test_a_task_that_can_not_defer_waits_and_says_why(
    monkeypatch, tmp_path, capsys, connection, why
):
    def submit(hook, *_, **__):
        write(read_job(UPath(hook._application_args[0])))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    connect(monkeypatch, **connection)
    assert operator(tmp_path).execute(context())["kept"] == 1
    said = capsys.readouterr().out
    assert "keeps its slot" in said
    assert (why if RESUMES else "needs Airflow 3.3") in said


def test_airflows_setting_is_the_default(monkeypatch, tmp_path):
    assert operator(tmp_path, deferrable=None).deferrable is False
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    assert operator(tmp_path, deferrable=None).deferrable is True
    assert operator(tmp_path, deferrable=False).deferrable is False
    with pytest.raises(ValueError, match="deferrable must be True or False, not 'yes'"):
        operator(tmp_path, deferrable="yes")


@follows
def test_a_standalone_cluster_starts_the_driver_itself(monkeypatch, tmp_path):
    store = Store()
    with rest_servers("RUNNING", "FINISHED") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        options = {"executor_memory": "1g", "driver_memory": "2g", "conf": {"spark.a": "b"}}
        wait = deferred(operator(tmp_path, **options), found := context(store=store))
        assert (wait.trigger.cluster, wait.trigger.application_id) == ("standalone", "driver-1")
        (request,) = servers.created
        assert request["mainClass"] == "org.apache.spark.deploy.SparkSubmit"
        assert request["sparkProperties"]["spark.driver.memory"] == "2g"
        line = " ".join(request["appArgs"])
        for part in ("--deploy-mode client", "--executor-memory 1g", "--conf spark.a=b"):
            assert part in line
        *_, main, uri = request["appArgs"]
        job = read_job(UPath(uri))
        assert UPath(main).read_text().startswith('"""Runs a job')
        assert UPath(main).parent.parent.path == str(tmp_path / "drivers")
        write(job)
        wait.trigger.poll_interval = 0.01
        event = event_of(wait.trigger)
        assert resumed(operator(tmp_path, **options), found, wait, event)["kept"] == 1


@follows
def test_a_task_waits_itself_for_a_driver_on_a_standalone_cluster(monkeypatch, tmp_path):
    with rest_servers("RUNNING", "RUNNING", "FAILED") as servers:
        connect(monkeypatch, servers, host="spark://127.0.0.1:7077")
        made = operator(tmp_path, deferrable=False)
        made._status_poll_interval = 0.01
        with pytest.raises(AirflowException, match="driver-1: FAILED"):
            made.execute(context(store=Store()))
        assert servers.kills == 0


@follows
def test_a_master_without_the_rest_api_is_said_so(monkeypatch, tmp_path):
    connect(
        monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"), host="spark://127.0.0.1:7077"
    )
    with pytest.raises(AirflowException, match="spark.master.rest.enabled=true"):
        operator(tmp_path).execute(context(store=Store()))


@follows
def test_a_local_task_in_the_worker_still_decides_before_anything_is_submitted(
    jobs, monkeypatch, tmp_path
):
    from airflow_hive_opt.provider.worker import WorkerLocalTask

    connect(monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"))
    refused = Outcome(Status.REFUSED, "max_partitions is 1", SUMMARY)
    monkeypatch.setattr(WorkerLocalTask, "job_or_outcome", lambda *_: refused)
    with pytest.raises(AirflowFailException, match="^max_partitions is 1$"):
        operator(tmp_path, cls=LocalTaskOperator).execute(context(store=Store()))
    assert jobs == []


@follows
@pytest.mark.parametrize(("first", "created"), [("silent", 0), ("not there", 1)])
def test_a_second_master_gets_no_driver_that_the_first_one_may_have(
    monkeypatch, tmp_path, first, created
):
    from airflow_hive_opt.provider.applications.following import run
    from airflow_hive_opt.provider.applications.standalone_master import StandaloneMaster

    with rest_servers("RUNNING") as silent, rest_servers("RUNNING") as active:
        silent.creates = False
        address = silent.address if first == "silent" else "http://127.0.0.1:1"
        work = StandaloneMaster((address, active.address)).submit({})
        if created:
            assert run(work) == "driver-1"
        else:
            with pytest.raises(NoAnswer, match="HTTP 502"):
                run(work)
        assert len(active.created) == created


@follows
def test_what_airflow_keeps_has_no_statement_and_no_login(monkeypatch, tmp_path, capsys):
    store, login = Store(), "http://user:secret-word@127.0.0.1:1"

    def submit(hook, *_, **__):
        hook._yarn_application_id = ID
        write(read_job(UPath(hook._application_args[0])))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    connect(monkeypatch, SimpleNamespace(address=login))
    assert operator(tmp_path).execute(context(store=store))["kept"] == 1
    assert "does not log in" in capsys.readouterr().out
    assert "secret-word" not in json.dumps(store)
    connect(monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"))
    made = operator(tmp_path, sql="SELECT 'a word of the statement'")
    wait = deferred(made, context(store=store))
    assert "word of the statement" not in json.dumps([store, wait.kwargs])


@follows
def test_a_submission_that_is_to_wait_is_not_deferred(monkeypatch, tmp_path, capsys):
    def submit(hook, *_, **__):
        write(read_job(UPath(hook._application_args[0])))

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    connect(monkeypatch, SimpleNamespace(address="http://127.0.0.1:1"))
    made = operator(tmp_path, conf={"spark.yarn.submit.waitAppCompletion": "true"})
    assert made.execute(context(store=Store()))["kept"] == 1
    assert "conf sets spark.yarn.submit.waitAppCompletion=true" in capsys.readouterr().out
