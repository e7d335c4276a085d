"""What a task takes from the XCom of its last run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_hive_opt.documents.index_trial import TrialArm
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
    others = [each for each in found if set(each) != {"index_trial"}]
    assert 50 < len(found) - len(others) < 150
    assert [{name: each[name] for name in SKIPPED} for each in others] == [SKIPPED] * len(others)
    assert {each["index_trial"].used for each in others} == {None}
    assert asked[0] == {"task_ids": "t", "include_prior_dates": True, "map_indexes": 3}


def test_about_every_tenth_run_tries_another_arm():
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
    tried = [each["index_trial"].tries for each in found]
    for arm in TrialArm:
        assert 25 < tried.count(arm) < 75
    assert tried.count(None) == 1000 - sum(map(tried.count, TrialArm))
    assert 150 < sum(each["index_trial"].tries_far_slower for each in found) < 350
    # the others read useless keys again
    assert all(each["index_trial"].counts == ("skipped_keys" in each) for each in found)
    known = [each["skipped_keys"] for each in found if "skipped_keys" in each]
    assert known == [{"6ff1": 2, "07ac": 1}] * len(known)
    retries = trials(2)
    for each in retries:
        assert each["index_trial"].is_retry
        assert (each["index_trial"].tries, each["index_trial"].counts) == (None, False)
        assert list(each["index_trial"].seconds.values()) == [8.0, 5.0, 6.0]


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
    assert found["index_trial"].seconds == {}


@pytest.mark.parametrize("value", ["true", 1, None, {}])
def test_only_true_lets_a_run_leave_the_statement_as_it_is(value):
    trial = {"used": 8.0, "may_be_untouched": value}
    found = skipped_of(context("r1", lambda **_: {"index_trial": trial}))
    assert not found["index_trial"].may_be_untouched


def test_a_run_reads_keys_if_the_last_summary_can_not_be_read(caplog):
    def pull(**arguments):
        raise RuntimeError("no API server")

    assert {str(skipped_of(context(f"r{number}", pull))) for number in range(9)} == {"{}"}
