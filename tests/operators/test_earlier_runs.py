"""What a task takes from the XCom of its last run."""

from __future__ import annotations

from types import SimpleNamespace

from airflow_hive_opt.local_task.index_trial import IndexTrial
from airflow_hive_opt.provider.earlier_runs import skipped_of

SUMMARY = {
    "decisions": [
        {"alias": "f", "skipped_keys": {"digest": "6ff1", "runs": 2}},
        {"table": "l.d.t", "indexes": [{"code": "NOT_PUBLISHED"}, {"code": "USED"}]},
    ]
}
SKIPPED = {"skipped_keys": {"6ff1": 2}, "skipped_indexes": {"l.d.t": 0}, "index_trial": {}}


def context(run_id, pull):
    return {"ti": SimpleNamespace(run_id=run_id, task_id="t", map_index=3, xcom_pull=pull)}


def test_about_one_run_in_ten_reads_keys_whatever_the_last_run_found():
    asked = []

    def pull(**arguments):
        asked.append(arguments)
        return SUMMARY

    found = [skipped_of(context(f"scheduled__{number}", pull)) for number in range(1000)]
    assert 50 < found.count({}) < 150
    assert found.count({}) + found.count(SKIPPED) == 1000
    assert asked[0] == {"task_ids": "t", "include_prior_dates": True, "map_indexes": 3}


def test_about_one_run_in_ten_tries_indexes_that_do_not_pay():
    trial = {"used": 8.0, "left_out": 5.0, "runs": 3}
    found = [
        skipped_of(context(f"scheduled__{number}", lambda **_: {"index_trial": trial}))[
            "index_trial"
        ]
        for number in range(1000)
    ]
    assert found.count(trial) == [IndexTrial(**each).uses_indexes for each in found].count(False)
    assert 850 < found.count(trial) < 950


def test_a_run_reads_keys_if_the_last_summary_can_not_be_read(caplog):
    def pull(**arguments):
        raise RuntimeError("no API server")

    assert {str(skipped_of(context(f"r{number}", pull))) for number in range(9)} == {"{}"}
