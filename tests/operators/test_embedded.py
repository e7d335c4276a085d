"""Where a task without a connection runs, by Airflow's configuration."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from airflow_hive_opt.provider.airflow_compat import AirflowException, AirflowFailException
from airflow_hive_opt.provider.embedded import run_embedded
from airflow_hive_opt.spark.session.java import SparkStartError
from tests.operators.deferred import operator
from tests.operators.test_submission import context


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SESSION", "perhaps", "session must be task or shared, not 'perhaps'"),
        ("SESSION_IDLE", "soon", "session_idle must be a whole number from 1 on, not 'soon'"),
        ("SESSION_TASKS", "0", "session_tasks must be a whole number from 1 on, not '0'"),
    ],
)
def test_a_wrong_configuration_of_the_session_fails_with_one_message(
    monkeypatch, name, value, message
):
    monkeypatch.setattr("airflow_hive_opt.spark.session.session.has_spark", lambda: False)
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SESSION", "shared")
    monkeypatch.setenv(f"AIRFLOW__HIVE_OPT__{name}", value)
    with pytest.raises(AirflowFailException, match=message):
        run_embedded("t", {}, None, lambda *_: None, None)


@pytest.mark.parametrize("ready", [True, False])
def test_a_task_can_be_stopped_before_its_statement_begins(monkeypatch, ready):
    """Airflow calls ``on_kill`` while the task waits for the shared Spark, or connects to it."""
    stops = []

    @contextmanager
    def shared_session(conf, bounds, stopped):
        stops[-1]()
        assert stopped.wait(10)
        if not ready:
            raise SparkStartError("the task was stopped while it waited")
        yield SimpleNamespace(session=None, interrupt=lambda: None)

    monkeypatch.setattr("airflow_hive_opt.spark.session.session.has_spark", lambda: False)
    monkeypatch.setattr("airflow_hive_opt.spark.session.shared.shared_session", shared_session)
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SESSION", "shared")
    with pytest.raises(AirflowException, match="the task was stopped"):
        run_embedded("t", {}, None, lambda _, interrupt: stops.append(interrupt), None)
    assert len(stops) == 1 + ready


def test_a_stop_while_spark_starts_is_not_lost(monkeypatch, tmp_path):
    ran = []

    def starts(name, settings, prepared, started, tell):
        made.on_kill()
        started(None, lambda: None)
        ran.append(name)

    monkeypatch.setattr("airflow_hive_opt.operators.statement.run_embedded", starts)
    made = operator(tmp_path, conn_id=None, deferrable=False)
    with pytest.raises(AirflowException, match="the task was stopped"):
        made.execute(context())
    assert ran == []
