"""Whether key indexes pay, by the times of a task's own runs."""

from __future__ import annotations

import logging

import pytest

from airflow_hive_opt.documents.indexed_scans import IndexCode, IndexUse
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task.index_trial import index_path_of, trial_after
from airflow_hive_opt.statement.scan_ref import ScanRef

SCAN = ScanRef("s", "lake.d.sales", (14, 26), "s")
USED = IndexUse(SCAN, "ticket", IndexCode.USED, files=20, total_files=100)


def after(trial, seconds, uses=(USED,), **options):
    """The next run's trial after a run of so many seconds, half of them each stage's."""
    job = Job("SELECT 1", index_trial=trial, **{"index_path": "/indexes", **options})
    phases = {"local task": seconds / 2, "map join": seconds / 2, "report": 9.0}
    return trial_after(job, uses if index_path_of(job) else (), phases)


def test_the_second_run_is_without_indexes_and_the_quicker_way_stays():
    first = after({}, 4.0)
    assert first == {"used": 4.0, "left_out": None, "runs": 0}
    second = after(first, 6.0)
    assert second == {"used": 4.0, "left_out": 6.0, "runs": 1}
    assert after(second, 5.0) == {"used": 5.0, "left_out": 6.0, "runs": 0}


def test_indexes_that_do_not_pay_are_tried_again_after_nine_runs():
    trial, ways = {}, []
    for _ in range(23):
        uses = index_path_of(Job("SELECT 1", index_path="/indexes", index_trial=trial)) != ""
        ways.append(uses)
        trial = after(trial, 8.0 if uses else 5.0)
    assert [at for at, uses in enumerate(ways) if uses] == [0, 10, 20]


def test_the_log_says_why_indexes_are_left_out(caplog):
    caplog.set_level(logging.INFO)
    after({"used": 8.0, "left_out": None, "runs": 0}, 5.0)
    assert "to compare: a run with them took 8.0 s" in caplog.text
    after({"used": 8.0, "left_out": 5.0, "runs": 1}, 5.0)
    assert "a run with them took 8.0 s, without them 5.0 s" in caplog.text


@pytest.mark.parametrize(
    ("uses", "seconds"),
    [
        ([IndexUse(SCAN, "ticket", IndexCode.USED, files=9, total_files=100)], 4.0),
        ([IndexUse(SCAN, "ticket", IndexCode.USED, files=0, total_files=100)], 4.0),
        ([USED], 300.0),  # of which the statement took 150, so it may take 750
        ([IndexUse(SCAN, "ticket", IndexCode.COSTS_MORE)], 4.0),  # nothing is left out anyway
        ([], 4.0),
    ],
)
def test_runs_that_are_not_compared(uses, seconds):
    assert after({}, seconds, uses) == {}


def test_without_index_path_or_in_two_tasks_nothing_is_compared():
    assert after({}, 4.0, index_path="") == {}
    job = Job("SELECT 1", index_path="/indexes")
    assert trial_after(job, (USED,), {"prelaunch": 1.0, "map join": 1.0}) == {}
