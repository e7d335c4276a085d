"""What a task takes from the XCom of its last run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_hive_opt.documents.index_trial import IndexTrial, Way
from airflow_hive_opt.provider.earlier_runs import skipped_of

SUMMARY = {
    "decisions": [
        {"alias": "f", "skipped_keys": {"digest": "6ff1", "runs": 2}},
        {"table": "l.d.t", "indexes": [{"code": "NOT_PUBLISHED"}, {"code": "USED"}]},
    ]
}
SKIPPED = {"skipped_keys": {"6ff1": 2}, "skipped_indexes": {"l.d.t": 0}}


def context(run_id, pull, try_number=1):
    ids = {"run_id": run_id, "task_id": "t", "map_index": 3, "try_number": try_number}
    return {"ti": SimpleNamespace(**ids, xcom_pull=pull)}


def test_about_one_run_in_ten_reads_keys_whatever_the_last_run_found():
    asked = []

    def pull(**arguments):
        asked.append(arguments)
        return SUMMARY

    found = [skipped_of(context(f"scheduled__{number}", pull)) for number in range(1000)]
    reads_all = {"index_trial": IndexTrial(counts=False)}
    assert 50 < found.count(reads_all) < 150
    others = [each for each in found if each != reads_all]
    assert [{name: each[name] for name in SKIPPED} for each in others] == [SKIPPED] * len(others)
    assert {each["index_trial"].used for each in others} == {None}
    assert asked[0] == {"task_ids": "t", "include_prior_dates": True, "map_indexes": 3}


def test_about_one_run_in_ten_compares_key_indexes():
    trial = {
        **{"used": 8.0, "left_out": 5.0, "untouched": 6.0, "may_be_untouched": True},
        "skipped_keys": {"07ac": 1},
    }

    def trials(number_of_try):
        return [
            skipped_of(
                context(
                    f"scheduled__{number}",
                    lambda **_: SUMMARY | {"index_trial": trial},
                    number_of_try,
                )
            )
            for number in range(1000)
        ]

    found = trials(1)
    tried = [each["index_trial"].compares for each in found]
    assert 50 < len(tried) - tried.count(0) < 150
    assert set(tried) == {0, 1, 2, 3, 4}
    assert 3 < tried.count(3) + tried.count(4) < 20
    assert 0.5 < tried.count(1) / tried.count(2) < 2
    # the others read useless keys again
    assert all(each["index_trial"].counts == ("skipped_keys" in each) for each in found)
    known = [each["skipped_keys"] for each in found if "skipped_keys" in each]
    assert known == [{"6ff1": 2, "07ac": 1}] * len(known)
    retries = [each["index_trial"] for each in trials(2)]
    assert retries == [IndexTrial(**{**trial, "used": None}, counts=False)] * 1000
    assert retries[0].way is Way.INDEXES


@pytest.mark.parametrize(
    "trial",
    [
        *({"used": value} for value in (float("nan"), float("inf"), -1.0, "8", 1e300, [])),
        *({"used": 8.0, name: -1} for name in ("left_out", "untouched")),
        *({"used": 8.0, "left_out": value} for value in ("x", {})),
        *(None, [], "8", {}, {"runs": 3}),
    ],
)
def test_an_odd_trial_is_none(trial):
    found = skipped_of(context("r1", lambda **_: {"index_trial": trial}))
    assert set(found["index_trial"].seconds.values()) == {None}


@pytest.mark.parametrize("value", ["true", 1, None, {}])
def test_only_true_lets_a_run_leave_the_statement_as_it_is(value):
    trial = {"used": 8.0, "may_be_untouched": value}
    found = skipped_of(context("r1", lambda **_: {"index_trial": trial}))
    assert not found["index_trial"].may_be_untouched


def test_a_run_reads_keys_if_the_last_summary_can_not_be_read(caplog):
    def pull(**arguments):
        raise RuntimeError("no API server")

    assert {str(skipped_of(context(f"r{number}", pull))) for number in range(9)} == {"{}"}
