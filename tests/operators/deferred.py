"""Deferred tasks as Airflow runs them, and what it keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred
from upath import UPath

from airflow_hive_opt.documents.job import write_outcome
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from airflow_hive_opt.provider.spark_provider import RESUMES
from tests.operators.test_submission import DONE

ENDED = {"how": "succeeded", "message": "in words"}
ID = "application_1_1"
follows = pytest.mark.skipif(not RESUMES, reason="before Airflow 3.3 no application is followed")


class Store(dict):
    """What Airflow keeps of a task between its attempts, as JSON."""

    def set(self, key, value, **_):
        self[key] = json.loads(json.dumps(value))


def connect(monkeypatch, servers=None, host="yarn", mode="cluster"):
    extra = {"deploy-mode": mode}
    if servers is not None:
        extra["yarn_resourcemanager_webapp_address"] = servers.address
        extra["rest-port"] = servers.address.rpartition(":")[2]
    document = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(document))


def operator(tmp_path, cls=MapJoinPruneOperator, **options):
    given = {"task_id": "t", "sql": "SELECT 1", "conn_id": "cluster", "deferrable": True}
    return cls(**{**given, "descriptor_path": str(tmp_path), **options})


def deferred(made, found):
    """Runs the task until it is deferred."""
    with pytest.raises(TaskDeferred) as raised:
        made.execute(found)
    assert raised.value.method_name == "resume"
    return raised.value


def resumed(made, found, wait, event):
    """Goes on as Airflow does in another process: with what it keeps, as JSON."""
    kept = json.loads(json.dumps(wait.kwargs))
    return made.resume(found, event=event, **kept)


def write(job, outcome=DONE):
    write_outcome(replace(outcome, token=job.token), UPath(job.path))
