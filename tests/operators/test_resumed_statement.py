"""A task that goes on after the triggerer has followed its statement, by what Airflow has kept."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from packaging.version import Version

from airflow_hive_opt.provider.airflow_compat import TRIGGERS_ARE_KILLED
from tests.versions.installed import SPARK

if Version("4.0") > SPARK or not TRIGGERS_ARE_KILLED:
    pytest.skip("deferral needs PySpark 4.0 and Airflow 3.3", allow_module_level=True)

from tests.operators.connect_attempt import context, made
from tests.operators.test_connect_operations import ID, left_by_first
from tests.services.answering_connect import answering, refuses, succeeds
from tests.services.processes import HOST

BEGUN = {"sql": None, **asdict(ID)}


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "store"
    found.mkdir()
    return found


def resumed(folder, monkeypatch, server, how="ended", begun=BEGUN, **options):
    at = {"conn_type": "spark_connect", "host": HOST, "port": int(server.url.split(":")[-1])}
    monkeypatch.setenv("AIRFLOW_CONN_SERVER", json.dumps(at))
    task = made(folder, "INSERT INTO r SELECT 1", deferrable=True, **options)
    return task.resume_statement(context(folder, 1), event={"how": how}, begun=begun)


def test_the_secrets_of_parameters_are_masked(folder, monkeypatch):
    failed = refuses("[CAST_INVALID_INPUT] The value 'resumed-secret' can't be cast.")
    with answering(failed) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowException, match="The value '\\*\\*\\*' can't be cast"):
            resumed(folder, monkeypatch, server, parameters={"password": "resumed-secret"})


@pytest.mark.parametrize("lacks", [["server_session"], ["operation", "server_session"]])
def test_a_task_that_another_version_has_deferred_says_so(folder, monkeypatch, lacks):
    begun = {name: value for name, value in BEGUN.items() if name not in lacks}
    with answering(succeeds) as server:
        left_by_first(folder, server.url)
        for given in (begun, {**BEGUN, "more": "x"}):
            with pytest.raises(AirflowFailException, match="deferred by another version"):
                resumed(folder, monkeypatch, server, begun=given)
        assert server.calls == []


def test_the_worker_says_that_it_waits_for_what_the_triggerer_could_not_follow(
    folder,
    monkeypatch,
    capsys,
):
    with answering(refuses("[DIVIDE_BY_ZERO] Division by zero.")) as server:
        left_by_first(folder, server.url)
        with pytest.raises(AirflowException, match="Division by zero"):
            resumed(folder, monkeypatch, server, "lost")
    assert "this worker waits" in capsys.readouterr().out
