"""What the operator checks and does for YARN around spark-submit, which is replaced here.

The resource manager is a small server that answers as YARN's REST API. The tests in tests/yarn have
a cluster.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from upath import UPath

from airflow_hive_opt.documents.job import read_job, write_outcome
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider import yarn
from airflow_hive_opt.provider.spark_provider import RESUMES
from tests.operators.test_submission import DONE, context, operator

ID = "application_1_1"
needs_address = pytest.mark.skipif(not RESUMES, reason="this Spark provider has the command yarn")


def cluster_mode(address: str | None = "http://127.0.0.1:1") -> dict:
    extra = {"yarn_resourcemanager_webapp_address": address} if address else {}
    return {"host": "yarn", "extra": {"deploy-mode": "cluster", **extra}}


@pytest.fixture
def submitted(monkeypatch):
    """The jobs that would have run; each ends well."""
    jobs = []

    def submit(hook, application="", **_):
        jobs.append(read_job(UPath(hook._build_spark_submit_command(application)[-1])))
        write_outcome(replace(DONE, token=jobs[-1].token), UPath(jobs[-1].path))
        hook._yarn_application_id = ID

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    return jobs


@contextmanager
def resource_manager(states):
    """Its address; ``states`` are what it says of the application, one after the other."""
    kills = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            state = states.pop(0) if len(states) > 1 else states[0]
            final = {"FINISHED": "SUCCEEDED", "FAILED": "FAILED", "KILLED": "KILLED"}
            app = {"state": state, "finalStatus": final.get(state, "UNDEFINED")}
            self._say({"app": app})

        def do_PUT(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            kills.append(self.path)
            self._say({"state": "KILLED"})

        def _say(self, document):
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", kills
        server.shutdown()


@needs_address
def test_an_application_that_airflow_can_not_stop_is_refused_before_submitting(
    submitted,
    monkeypatch,
    tmp_path,
):
    made = operator(monkeypatch, tmp_path, cluster_mode(address=None))
    with pytest.raises(AirflowFailException, match="'yarn_resourcemanager_webapp_address'.*stop"):
        made.execute(context())
    assert submitted == []
    operator(monkeypatch, tmp_path, {"host": "yarn"}).execute(context())  # client mode
    assert len(submitted) == 1


@pytest.mark.skipif(RESUMES, reason="this Spark provider stops applications by REST")
def test_an_older_spark_provider_needs_the_command_yarn(submitted, monkeypatch, tmp_path):
    made = operator(monkeypatch, tmp_path, cluster_mode(address=None))
    with pytest.raises(AirflowFailException, match="no command 'yarn'"):
        made.execute(context())
    assert submitted == []


@needs_address
@pytest.mark.parametrize(
    ("options", "warned"),
    [
        ({"retries": 1}, True),
        ({"retries": 1, "yarn_track_via_rm_api": True, "durable": False}, False),
        ({"retries": 1, "yarn_track_via_rm_api": True}, False),
        ({}, False),
    ],
)
def test_a_task_whose_retry_may_start_a_second_driver_says_so(
    submitted,
    monkeypatch,
    tmp_path,
    caplog,
    options,
    warned,
):
    monkeypatch.setattr(MapJoinPruneOperator, "poll_until_complete", lambda *_: None)
    made = operator(monkeypatch, tmp_path, cluster_mode(), **options)
    with caplog.at_level(logging.WARNING):
        made.execute(context())
    assert ("a retry starts another one beside it" in caplog.text) is warned


@pytest.fixture
def killed(monkeypatch):
    """spark-submit is killed once it has said the application's ID."""

    def submit(hook, application="", **_):
        hook._yarn_application_id = ID
        raise AirflowException("Cannot execute: spark-submit. Error code is: -9.")

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    monkeypatch.setattr(yarn, "_SECONDS_BETWEEN_LOOKS", 0)


@needs_address
@pytest.mark.parametrize(
    ("states", "kills"), [(["RUNNING", "RUNNING", "KILLED"], 2), (["FAILED"], 0)]
)
def test_the_application_of_a_killed_spark_submit_is_stopped(
    killed, monkeypatch, tmp_path, states, kills
):
    """It would go on beside the retry's."""
    with resource_manager(states) as (address, asked):
        made = operator(monkeypatch, tmp_path, cluster_mode(address))
        with pytest.raises(AirflowException, match="Error code is: -9") as failure:
            made.execute(context())
    assert not isinstance(failure.value, AirflowFailException)  # it may be retried
    assert asked == [f"/ws/v1/cluster/apps/{ID}/state"] * kills


@needs_address
@pytest.mark.parametrize("is_up", [True, False])
def test_an_application_that_can_not_be_stopped_is_not_run_again(
    killed, monkeypatch, tmp_path, is_up
):
    with resource_manager(["RUNNING"]) as (address, _):
        given = address if is_up else "http://127.0.0.1:1"
        made = operator(monkeypatch, tmp_path, cluster_mode(given))
        with pytest.raises(AirflowFailException, match=f"{ID} may still run"):
            made.execute(context())
