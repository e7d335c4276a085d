"""Where a task without a connection runs, by Airflow's configuration."""

from __future__ import annotations

import pytest

from airflow_hive_opt.provider.airflow_compat import AirflowFailException
from airflow_hive_opt.provider.embedded import run_embedded


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SESSION", "perhaps", "session must be task or shared, not 'perhaps'"),
        ("SESSION_IDLE", "soon", "session_idle must be a whole number from 1 on, not 'soon'"),
        ("SESSION_TASKS", "0", "session_tasks must be a whole number from 1 on, not '0'"),
    ],
)
def test_a_wrong_configuration(monkeypatch, name, value, message):
    monkeypatch.setattr("airflow_hive_opt.spark.session.session.has_spark", lambda: False)
    monkeypatch.setenv("AIRFLOW__HIVE_OPT__SESSION", "shared")
    monkeypatch.setenv(f"AIRFLOW__HIVE_OPT__{name}", value)
    with pytest.raises(AirflowFailException, match=message):
        run_embedded("t", {}, None, lambda *_: None)
