"""Submission: the shipped files, the arguments of spark-submit, and what a retry resumes.

No cluster runs here, and spark-submit is replaced. The tests in tests/e2e use a cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import py4j
import pyspark
import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)
from upath import UPath

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.job import (
    Job,
    Outcome,
    Stages,
    Status,
    outcome_path,
    read_job,
    read_outcome,
    write_job,
    write_outcome,
)
from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.applications.cluster_run import ClusterRun
from airflow_hive_opt.provider.spark_provider import RESUMES
from airflow_hive_opt.provider.submission import (
    Application,
    prepare_environment,
    resumption_key,
)
from airflow_hive_opt.provider.worker import WorkerLocalTask
from airflow_hive_opt.spark.application.shipping import ship

SUMMARY = {"uri": "file:///x", "kept": 1, "total": 2, "seconds": {}, "work": {}}
DONE = Outcome(Status.DONE, "kept 1 of 2 partitions", SUMMARY)


def context(try_number=1, clear_number=0, max_tries=1, store=None):
    instance = SimpleNamespace(
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=-1,
        try_number=try_number,
        max_tries=max_tries,
        stats_tags={},
        xcom_push=lambda key, value: None,
    )
    return {
        "ti": instance,
        "dag_run": SimpleNamespace(clear_number=clear_number),
        "task_state_store": store,
        "outlet_events": {},
    }


@pytest.fixture
def submitted(monkeypatch):
    """The commands that would have run; each leaves ``outcome`` where its job says."""
    commands: list[list[str]] = []

    def submit(hook, application="", **_):
        command = hook._build_spark_submit_command(application)
        commands.append(command)
        job = read_job(UPath(command[-1]))
        submit.tokens.append(job.token)
        if submit.outcome is not None:
            token = job.token if submit.token is None else submit.token
            write_outcome(replace(submit.outcome, token=token), UPath(job.path))
        if submit.error is not None:
            raise submit.error
        hook._yarn_application_id = "application_1_1"
        return "driver-1"

    submit.outcome, submit.error, submit.token, submit.tokens = DONE, None, None, []
    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return SimpleNamespace(commands=commands, says=submit)


MANAGER = {"yarn_resourcemanager_webapp_address": "http://manager:8088"}


def operator(monkeypatch, tmp_path, connection, **options):
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "spark", **connection}))
    return MapJoinPruneOperator(
        task_id="t",
        sql="SELECT 1",
        conn_id="cluster",
        descriptor_path=str(tmp_path),
        **options,
    )


def test_a_yarn_submission_in_cluster_mode_has_these_arguments(submitted, monkeypatch, tmp_path):
    yarn = tmp_path / "bin" / "yarn"  # by which older Spark providers stop applications
    yarn.parent.mkdir()
    yarn.touch(0o755)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{yarn.parent}")
    made = operator(
        monkeypatch,
        tmp_path,
        {"host": "yarn", "extra": {"deploy-mode": "cluster", "queue": "etl", **MANAGER}},
        conf={"spark.sql.shuffle.partitions": 8},
        py_files="mine.zip",
        executor_memory="2g",
    )
    assert made.execute(context())["uri"] == str(tmp_path / "d/r/t/-1/1.json")
    (command,) = submitted.commands
    line = " ".join(command)
    for part in (
        "--master yarn",
        "--deploy-mode cluster",
        "--queue etl",
        "--executor-memory 2g",
        "--conf spark.yarn.maxAppAttempts=1",
        "--conf spark.sql.shuffle.partitions=8",
        "airflow_hive_opt.zip,mine.zip",
        f"main.py file://{tmp_path}/d/r/t/-1/1.job.json",
    ):
        assert part in line
    assert (made.conf, made.py_files) == ({"spark.sql.shuffle.partitions": 8}, "mine.zip")


@pytest.mark.skipif(RESUMES, reason="this Spark provider can follow an application")
def test_durable_is_refused_if_airflow_can_not_resume_an_application(
    submitted, monkeypatch, tmp_path
):
    connection = {"host": "yarn"}
    with pytest.raises(TypeError, match="durable=True needs Airflow 3.3"):
        operator(monkeypatch, tmp_path, connection, durable=True)
    operator(monkeypatch, tmp_path, connection, durable=False).execute(context())
    assert len(submitted.commands) == 1


@pytest.mark.skipif(not RESUMES, reason="this Spark provider follows no application")
def test_durable_on_yarn_requires_tracking_by_the_resource_manager(
    submitted, monkeypatch, tmp_path
):
    connection = {"host": "yarn", "extra": {"deploy-mode": "cluster", **MANAGER}}
    with pytest.raises(AirflowFailException, match="requires yarn_track_via_rm_api=True"):
        operator(monkeypatch, tmp_path, connection, durable=True).execute(context())
    assert submitted.commands == []


@pytest.mark.skipif(RESUMES, reason="this Spark provider follows a driver on a worker")
@pytest.mark.parametrize(
    ("extra", "options"), [({"deploy-mode": "cluster"}, {}), ({}, {"deploy_mode": "cluster"})]
)
def test_a_standalone_cluster_in_cluster_mode_is_refused_before_submitting(
    submitted, monkeypatch, tmp_path, extra, options
):
    connection = {"host": "spark://m:7077", "extra": extra}
    with pytest.raises(AirflowFailException, match="in client mode alone"):
        operator(monkeypatch, tmp_path, connection, **options).execute(context())
    assert submitted.commands == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (Status.REFUSED, AirflowFailException),
        (Status.NOTHING_TO_DO, AirflowSkipException),
        (Status.FAILED, AirflowException),
    ],
)
def test_the_outcome_of_the_application_decides_how_the_task_ends(
    submitted, monkeypatch, tmp_path, status, error
):
    submitted.says.outcome = Outcome(status, "in words", SUMMARY)
    submitted.says.error = AirflowException("Error code is: 1.")
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(error, match="^in words$"):
        made.execute(context())
    assert made.summary["uri"] == str(tmp_path / "d/r/t/-1/1.json")  # for the links


def test_a_successful_application_without_an_outcome_is_not_retried(
    submitted, monkeypatch, tmp_path
):
    submitted.says.outcome = None
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(AirflowFailException, match="may have run.*must both reach"):
        made.execute(context())


def test_a_failed_application_without_an_outcome_is_retried(submitted, monkeypatch, tmp_path):
    submitted.says.outcome = None
    submitted.says.error = AirflowException("Error code is: 1. no route to spark://m:7077")
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(AirflowException, match="no route to .*m:7077.*wrote no outcome") as no:
        made.execute(context())
    assert not isinstance(no.value, AirflowFailException)


def outcome_at(tmp_path) -> Path:
    path = tmp_path / "d/r/t/-1/1.outcome.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("token", ["", "0" * 32])
def test_an_outcome_of_another_application_is_ignored(submitted, monkeypatch, tmp_path, token):
    """A zombie may write such an outcome while this application runs."""
    submitted.says.token = token
    submitted.says.error = AirflowException("Error code is: 1.")
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(AirflowException, match="Error code is: 1.*belongs to another application"):
        made.execute(context())
    assert made.summary is None


def test_a_storage_that_does_not_answer_is_no_missing_outcome(tmp_path):
    path = UPath(tmp_path / "1.json")
    application = Application(str(path), "token")
    at = outcome_path(path)
    at.mkdir()  # an error of the storage, as for a file that is there and can't be read
    for look in (application.has_ended, application.has_finished):
        with pytest.raises(DescriptorError):
            look()
    at.rmdir()
    assert not application.has_ended()
    write_outcome(Outcome(Status.DONE, "", token="token"), path)
    assert application.has_finished()


@pytest.mark.skipif(not RESUMES, reason="this Spark provider can't follow an application")
@pytest.mark.parametrize("status", ["RUNNING", "FINISHED", "FAILED", "KILLED"])
def test_no_application_starts_while_an_outcome_can_not_be_read(monkeypatch, tmp_path, status):
    made = operator(monkeypatch, tmp_path, {"host": "yarn"})
    run = ClusterRun(made, context(), Job("SELECT 1", str(tmp_path / "1.json")))
    at = outcome_path(UPath(run.application.path))
    at.mkdir(parents=True)
    if status in ("RUNNING", "FINISHED"):  # it is followed, or its outcome is read at the end
        assert run.status(lambda: status) == status
    else:
        with pytest.raises(DescriptorError):
            run.status(lambda: status)
    at.rmdir()
    assert run.status(lambda: status) == status
    write_outcome(replace(DONE, token=run.application.token), UPath(run.application.path))
    assert run.status(lambda: status) == "SUCCEEDED"


def test_an_old_outcome_is_removed_before_the_submission(submitted, monkeypatch, tmp_path):
    """As an earlier life of the same run leaves it: a run that was deleted and made again."""
    path = outcome_at(tmp_path)
    write_outcome(DONE, UPath(path.with_name("1.json")))
    submitted.says.outcome = None
    submitted.says.error = AirflowException("Error code is: 1.")
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(AirflowException, match="Error code is: 1.*there is no such file"):
        made.execute(context())
    assert not path.exists()


def test_an_old_outcome_that_can_not_be_removed_stops_the_submission(
    submitted, monkeypatch, tmp_path
):
    outcome_at(tmp_path).mkdir()
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    with pytest.raises(AirflowException, match=r"can't remove .*1\.outcome\.json"):
        made.execute(context())
    assert submitted.commands == []


def test_every_submission_has_its_own_token(submitted, monkeypatch, tmp_path):
    made = operator(monkeypatch, tmp_path, {"host": "spark://m:7077"})
    made.execute(context())
    made.execute(context())
    assert len(set(submitted.says.tokens)) == 2
    assert all(submitted.says.tokens)


@pytest.mark.skipif(not RESUMES, reason="this Spark provider follows no application")
def test_a_retry_resumes_the_application_and_a_cleared_task_does_not(
    submitted, monkeypatch, tmp_path
):
    """The application of a killed attempt finished meanwhile, at that attempt's path."""
    connection = {"host": "yarn", "extra": {"deploy-mode": "cluster", **MANAGER}}
    monkeypatch.setattr(MapJoinPruneOperator, "get_job_status", lambda *_: "SUCCEEDED")
    monkeypatch.setattr(MapJoinPruneOperator, "poll_until_complete", lambda *_: None)
    store: dict[str, str] = {}
    stored = SimpleNamespace(get=store.get, set=store.__setitem__)

    def run(**attempt):
        made = operator(monkeypatch, tmp_path, connection, yarn_track_via_rm_api=True)
        return made.execute(context(store=stored, **attempt))["uri"]

    first = run(try_number=1)
    assert run(try_number=2) == first
    assert len(submitted.commands) == 1
    (key,) = (key for key in store if key.endswith("_token"))
    token = store.pop(key)  # without it, nothing is believed
    with pytest.raises(AirflowFailException, match="belongs to another application"):
        run(try_number=2)
    store[key] = token
    cleared = run(try_number=3, clear_number=1, max_tries=3)
    assert cleared.endswith("/3.json")
    assert len(submitted.commands) == 2


@pytest.mark.skipif(not RESUMES, reason="nothing is resumed before Airflow 3.3")
def test_a_retry_resumes_the_application_before_its_gates_are_checked(
    submitted, monkeypatch, tmp_path
):
    """The application has written or will write, so a gate must not hide its outcome."""
    connection = {"host": "yarn", "extra": {"deploy-mode": "cluster", **MANAGER}}
    monkeypatch.setattr(MapJoinPruneOperator, "get_job_status", lambda *_: "SUCCEEDED")
    monkeypatch.setattr(MapJoinPruneOperator, "poll_until_complete", lambda *_: None)
    store: dict[str, str] = {}
    stored = SimpleNamespace(get=store.get, set=store.__setitem__)

    def run(**attempt):
        made = operator(monkeypatch, tmp_path, connection, yarn_track_via_rm_api=True)
        return made.execute(context(store=stored, **attempt))

    first = run(try_number=1)
    skips = Outcome(Status.NOTHING_TO_DO, "no partition matches", SUMMARY)
    monkeypatch.setattr(WorkerLocalTask, "job_or_outcome", lambda *_: skips)
    assert run(try_number=2) == first
    with pytest.raises(AirflowSkipException):
        run(try_number=3, clear_number=1, max_tries=3)
    assert len(submitted.commands) == 1


def test_parameters_that_are_not_plain_values_are_refused_before_submission(
    submitted, monkeypatch, tmp_path
):
    made = operator(
        monkeypatch, tmp_path, {"host": "spark://m:7077"}, parameters={"a": date(2026, 1, 1)}
    )
    with pytest.raises(AirflowFailException, match="parameters and hive_conf must be text"):
        made.execute(context())
    assert submitted.commands == []


def test_an_application_of_another_statement_is_not_resumed():
    job = Job("SELECT 1", "/a/1.json", Stages.BOTH)
    mine = resumption_key(job, context())
    assert mine == resumption_key(Job("SELECT 1", "/a/2.json", Stages.BOTH), context(try_number=2))
    assert mine != resumption_key(Job("SELECT 2", "/a/1.json", Stages.BOTH), context())
    assert mine == resumption_key(replace(job, token="t"), context())


def test_jobs_and_outcomes_are_read_as_they_were_written(tmp_path):
    job = Job(
        "SELECT :a",
        "/a/1.json",
        Stages.KEYS,
        {"a": "\ud800", "b": 2.5, "c": None},
        {"hive.mapjoin.smalltable.filesize": 7},
        gates=Gates(max_bytes=3, on_empty="skip"),
        descriptor="/d",
        digest="x",
        columns=("ds",),
        token="t",
    )
    path = UPath(tmp_path) / "1.json"
    assert read_job(write_job(job, path)) == job
    outcome = Outcome(
        Status.REFUSED, "no", {"kept": 1, "work": {"a": None}}, ("n",), (("1",),), "S", "t"
    )
    write_outcome(outcome, path)
    assert read_outcome(path, "t") == outcome
    for token in ("", "u"):
        with pytest.raises(DescriptorError, match="belongs to another application"):
            read_outcome(path, token)


def test_an_outcome_with_too_long_rows_is_written_without_rows(tmp_path):
    path = UPath(tmp_path) / "1.json"
    outcome = replace(DONE, token="t", columns=("a",), rows=(("x" * (65 << 20),),))
    write_outcome(outcome, path)
    assert read_outcome(path, "t") == replace(outcome, rows=())


def test_an_outcome_without_a_token_is_refused(tmp_path):
    path = UPath(tmp_path) / "1.json"
    write_outcome(DONE, path)
    with pytest.raises(DescriptorError, match="belongs to another application"):
        read_outcome(path, "")


@pytest.mark.parametrize("own", [True, False])
def test_only_this_environments_spark_submit_gets_this_python(tmp_path, monkeypatch, own):
    """It finds its own Spark by this variable, too."""
    folder = Path(sys.executable).parent if own else tmp_path
    if not own:
        (tmp_path / "spark-submit").write_text("#!/bin/sh\n")
        (tmp_path / "spark-submit").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    prepare_environment()
    assert os.environ.pop("PYSPARK_DRIVER_PYTHON", None) == (sys.executable if own else None)


def test_the_argument_application_is_refused(tmp_path):
    with pytest.raises(TypeError, match="application can't be set"):
        MapJoinPruneOperator(task_id="t", sql="SELECT 1", application="x.jar")


def test_the_shipped_files_run_with_pyspark_alone(tmp_path):
    main, package = ship(tmp_path)
    machine = tmp_path / "machine"
    machine.mkdir()
    for module in (pyspark, py4j):
        folder = Path(module.__file__).parent
        (machine / folder.name).symlink_to(folder)
    script = main.read_text().replace("sys.exit(main())", "print(*sorted(sys.modules))")
    start = f"import sys\nsys.path[:0] = [{str(package)!r}, {str(machine)!r}]\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + script],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert {"airflow_hive_opt.spark.application.submitted", "sqlglot", "upath"} <= loaded
    assert "airflow" not in loaded


@pytest.mark.parametrize(
    ("old", "pyspark", "message"),
    [
        # where PySpark of today can't even be imported
        (
            "sys.version_info = (3, 8)",
            "raise SyntaxError",
            "airflow-hive-opt needs Python 3.9 on the cluster, and this is ",
        ),
        (
            "",
            "__version__ = '3.4.1'",
            "airflow-hive-opt needs Spark 3.5 on the cluster, and this is 3.4.1",
        ),
    ],
)
def test_a_cluster_with_an_old_python_or_pyspark_gets_one_clear_error(
    tmp_path, old, pyspark, message
):
    main, _ = ship(tmp_path)
    (tmp_path / "pyspark.py").write_text(pyspark)
    script = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{old}\n{main.read_text()}"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(message)
    assert len(done.stderr.splitlines()) == 1
