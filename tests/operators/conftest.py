"""Fixtures of tasks whose applications run in cluster mode; spark-submit is replaced."""

from __future__ import annotations

import sys

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from upath import UPath

from airflow_hive_opt.documents.job import read_job
from airflow_hive_opt.provider.applications import following
from tests.services.submit_variables import put_back


@pytest.fixture
def quick(monkeypatch):
    put_back(monkeypatch)
    monkeypatch.setenv("AIRFLOW_HIVE_OPT_TASK_PID", "0")
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    monkeypatch.setattr(following, "_SECONDS_BETWEEN_KILLS", 0.01)


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that were submitted by spark-submit."""
    found = []

    def submit(hook, application="", **_):
        command = hook._build_spark_submit_command(application)
        assert "spark.yarn.submit.waitAppCompletion=false" in command
        found.append(read_job(UPath(command[-1])))
        hook._yarn_application_id = f"application_1_{len(found)}"

    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    return found


@pytest.fixture
def dies(monkeypatch, jobs):
    """The worker dies after the submission, before it knows the application's ID."""
    submit = SparkSubmitHook.submit

    def and_die(hook, *given, **named):
        submit(hook, *given, **named)
        raise SystemExit

    def attempt(made, found):
        with monkeypatch.context() as patch:
            patch.setattr(SparkSubmitHook, "submit", and_die)
            with pytest.raises(SystemExit):
                made.execute(found)

    return attempt
