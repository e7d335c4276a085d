"""Whether key indexes pay, by the times of a task's own runs."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from airflow_hive_opt.documents.descriptor import (
    Changes,
    Decision,
    Descriptor,
    PlannedFiles,
)
from airflow_hive_opt.documents.index_trial import IndexTrial, TrialArm
from airflow_hive_opt.documents.indexed_scans import (
    Hop,
    IndexCode,
    IndexUse,
    SkippedKeys,
)
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task.index_trial import arm_of, index_path_of, trial_after
from airflow_hive_opt.provider.earlier_runs import skipped_indexes_in, skipped_keys_in
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.template import template_digest

SCAN = ScanRef("s", "lake.d.sales", (14, 26), "s")
USED = IndexUse(SCAN, "ticket", IndexCode.USED, files=20, total_files=100)
FEW = PlannedFiles(SCAN, "true", files=20, total_files=100)
HOP = Hop((), files=20, bytes=0, files_without=100, bytes_without=0)


USED_ARM, LEFT_OUT, UNTOUCHED = TrialArm
NOTHING = {
    "statement": template_digest("SELECT 1"),
    "untouched": None,
    "may_be_untouched": True,
    "skipped_keys": {},
    "skipped_indexes": {},
}


def descriptor_of(*uses: IndexUse, planned=FEW, skipped=None, more=None) -> Descriptor:
    decision = Decision(SCAN, "RESTRICTED", "", skipped)
    files = (planned, *([more] if more else ()))
    return Descriptor("", "", (), (decision,), planned_files=files, index_uses=uses)


def job_of(trial, **options) -> Job:
    known = IndexTrial(**{"statement": NOTHING["statement"], **trial})
    return Job("SELECT 1", index_trial=known, **{"index_path": "/indexes", **options})


def after(trial, seconds, found=None, reads_hive_tables=False, **options):
    """The next run's trial after a run of so many seconds, half of them each stage's."""
    job = job_of(trial, **options)
    phases = {"local task": seconds / 2, "map join": seconds / 2, "report": 9.0}
    uses = descriptor_of(USED) if found is None else found
    ran = uses if index_path_of(job) else descriptor_of()
    return trial_after(job, ran, phases, reads_hive_tables)


def arm(trial, **fields) -> TrialArm:
    return arm_of(job_of({**trial, **fields}))


def uses_indexes(trial) -> bool:
    return arm(trial) is USED_ARM


def test_a_run_that_compares_goes_the_other_way_and_the_quicker_way_stays():
    first = after({}, 4.0)
    assert first == {"used": 4.0, "left_out": None, **NOTHING}
    assert uses_indexes(first)
    compared = after({**first, "tries": LEFT_OUT}, 6.0)
    assert compared == {"used": 4.0, "left_out": 6.0, **NOTHING}
    assert uses_indexes(compared)
    slower = after(compared, 7.0)
    assert slower == {"used": 7.0, "left_out": 6.0, **NOTHING}
    assert not uses_indexes(slower)
    left_out = after(slower, 5.0)
    assert left_out == {"used": 7.0, "left_out": 5.0, **NOTHING}
    again = after({**left_out, "tries": USED_ARM}, 3.0)
    assert again == {"used": 3.0, "left_out": 5.0, **NOTHING}
    assert uses_indexes(again)


def test_a_run_whose_time_does_not_count_keeps_what_is_known():
    known = {"used": 4.0, "left_out": 6.0, **NOTHING}
    assert after({**known, "counts": False}, 60.0) == known
    slower = {"used": 8.0, "left_out": 6.0, **NOTHING}
    assert after({**slower, "counts": False}, 60.0) == slower


def test_times_of_another_statement_are_not_known():
    """But those of the same with other literals."""
    known = {"used": 8.0, "untouched": 5.0, "may_be_untouched": True}
    assert after({**known, "statement": template_digest("SELECT 2")}, 6.0)["untouched"] == 6.0
    found = after({**known, "statement": template_digest("SELECT x")}, 6.0)
    assert found == {**NOTHING, "used": 6.0, "left_out": None}
    not_counted = after({**known, "statement": "", "counts": False}, 6.0)
    assert not_counted == {**NOTHING, "used": None, "left_out": None}


def test_a_run_that_has_read_useless_keys_does_not_count():
    """The next runs do not read these keys."""
    fresh, known = SkippedKeys("07ac", 0), {"used": 4.0, "left_out": 6.0, **NOTHING}
    for found in (
        descriptor_of(USED, skipped=fresh),
        descriptor_of(USED, replace(USED, code=IndexCode.MOST_FILES_HOLD_KEYS, skipped_keys=fresh)),
    ):
        assert after(known, 60.0, found) == known
    assert after(known, 5.0, descriptor_of(USED, skipped=SkippedKeys("07ac", 1)))["used"] == 5.0


@pytest.mark.parametrize("name", ["skipped_keys", "skipped_indexes"])
def test_runs_without_indexes_pass_on_what_need_not_be_tried(name):
    """Each is one more run in a row; a run with indexes finds out by itself."""
    trial = {"used": 8.0, "left_out": 6.0, "may_be_untouched": True}
    read = {"skipped_keys": skipped_keys_in, "skipped_indexes": skipped_indexes_in}[name]
    trial = after(trial, 5.0, **{name: {"a": 3}})
    assert trial[name] == read({"index_trial": trial}) == {"a": 4}
    trial = after(trial, 5.0, **{name: {"a": 4}})
    assert trial[name] == {"a": 5}
    of_one_that_reads_all_keys = after({**trial, "counts": False}, 5.0)
    assert of_one_that_reads_all_keys[name] == {"a": 6}
    for counts in (True, False):
        again = after({**trial, "tries": USED_ARM, "counts": counts}, 5.0, **{name: {"a": 5}})
        assert again[name] == {}


def test_the_log_says_why_indexes_are_left_out(caplog):
    caplog.set_level(logging.INFO)
    after({"used": 8.0}, 5.0)
    after({"used": 8.0, "untouched": 5.0}, 5.0)
    after({"used": 8.0, "left_out": 2.0, "tries": LEFT_OUT}, 5.0, index_path="")
    assert caplog.text == ""
    after({"used": 8.0, "tries": LEFT_OUT}, 5.0)
    after({"used": 8.0, "left_out": 5.0}, 5.0)
    after({"used": 8.0, "left_out": 5.0, "tries": LEFT_OUT}, 5.0)
    after({"used": 8.0, "untouched": 5.0, "may_be_untouched": True}, 5.0)
    quickest = (
        "this run goes without key indexes, which was quickest; the task's last runs: with key "
        "indexes 8.0 s, without key indexes 5.0 s"
    )
    assert caplog.messages == [
        "this run goes without key indexes, to compare; the task's last runs: with key indexes "
        "8.0 s",
        quickest,
        quickest,
        "this run goes as the statement is, which was quickest; the task's last runs: with key "
        "indexes 8.0 s, as the statement is 5.0 s",
    ]


def test_a_run_may_leave_the_statement_as_it_is_to_compare():
    first = after({}, 4.0)
    assert arm(first, tries=UNTOUCHED) is UNTOUCHED
    compared = after({**first, "tries": UNTOUCHED}, 3.0, skipped_keys={"a": 3})
    assert compared == {**first, "untouched": 3.0, "skipped_keys": {"a": 4}}
    assert arm(compared) is UNTOUCHED
    again = after(compared, 5.0)
    assert again == {**compared, "untouched": 5.0, "skipped_keys": {"a": 5}}
    assert arm(again) is USED_ARM
    assert {arm(compared, tries=each) for each in TrialArm} == set(TrialArm)


@pytest.mark.parametrize("times", [{}, {"left_out": 5.0, "untouched": 4.0}])
def test_nothing_is_compared_before_the_time_with_indexes_is_known(times):
    known = {**times, "may_be_untouched": True}
    assert {arm(known, tries=each) for each in (None, *TrialArm)} == {USED_ARM}


def test_a_retry_uses_the_indexes_and_keeps_the_times():
    known = {**NOTHING, "used": 8.0, "left_out": 5.0, "untouched": 4.0}
    retry = {**known, "is_retry": True, "counts": False}
    assert {arm(retry, tries=each) for each in (None, *TrialArm)} == {USED_ARM}
    assert after(retry, 60.0) == known


def test_an_arm_that_took_far_longer_is_rarely_tried_again():
    """Until the quickest one takes longer too."""
    known = {"used": 4.0, "left_out": 5.0, "untouched": 9.0, "may_be_untouched": True}
    assert arm(known, tries=LEFT_OUT) is LEFT_OUT
    assert arm(known, tries=UNTOUCHED) is USED_ARM
    assert arm(known, tries=UNTOUCHED, used=4.5) is UNTOUCHED
    assert arm(known, tries=UNTOUCHED, tries_far_slower=True) is UNTOUCHED


def test_a_statement_that_may_not_be_left_as_it_is_any_more_is_pruned():
    """A run found that the statement might take long now, whatever it took before."""
    known = {"used": 6.0, "left_out": 7.0, "untouched": 5.0}
    for may_be, expected in ((True, UNTOUCHED), (False, USED_ARM)):
        assert arm(known, may_be_untouched=may_be) is expected
        for far in (False, True):
            fields = {"tries": UNTOUCHED, "tries_far_slower": far, "may_be_untouched": may_be}
            assert arm(known, **fields) is expected


DAYS = ScanRef("d", "lake.d.days", (34, 46), "d")
FEWER = PlannedFiles(DAYS, "true", files=1, total_files=1000)
MIB = 1 << 20
LARGE = replace(FEWER, bytes=1000 * MIB, total_files=10, total_bytes=10_000 * MIB)
OF_DAYS = replace(USED, scan=DAYS, total_files=1000, hop=HOP)


@pytest.mark.parametrize(
    ("found", "seconds", "may_be"),
    [
        # half of the seconds are the statement's
        (descriptor_of(USED), 4.0, True),
        (descriptor_of(USED), 116.0, True),  # 290 s with all files
        # another table, of which a thousandth is read
        (descriptor_of(USED, more=FEWER), 4.0, True),
        (descriptor_of(USED, more=FEWER), 12.0, False),
        (descriptor_of(USED, more=replace(FEWER, files=None)), 4.0, False),
        (descriptor_of(USED, more=replace(FEWER, total_files=None)), 4.0, False),
        # large files count more than small ones: 10 times as much, not 5
        (descriptor_of(USED, more=LARGE), 50.0, True),
        (descriptor_of(USED, more=LARGE), 100.0, False),
        # a scan whose files a hop leaves
        (descriptor_of(USED, OF_DAYS), 4.0, True),
        (descriptor_of(USED, OF_DAYS), 24.0, False),
        (descriptor_of(USED, replace(OF_DAYS, total_files=None)), 4.0, False),
        (replace(descriptor_of(USED), changes=Changes((0, 1), (2, 3))), 4.0, False),
    ],
)
def test_a_statement_that_may_read_far_more_or_that_changes_rows_is_pruned(found, seconds, may_be):
    trial = after({}, seconds, found)
    assert trial["may_be_untouched"] == may_be
    assert (arm(trial, tries=UNTOUCHED) is UNTOUCHED) == may_be
    kept = after({**trial, "tries": LEFT_OUT}, 5.0)
    assert (kept["left_out"], kept["may_be_untouched"]) == (5.0, may_be)


def test_a_statement_with_hive_tables_held_snapshots_or_shared_keys_is_pruned():
    assert after({}, 4.0)["may_be_untouched"]
    assert not after({}, 4.0, reads_hive_tables=True)["may_be_untouched"]
    assert not after({}, 4.0, hold_snapshots=True)["may_be_untouched"]
    assert not after({}, 4.0, key_sets="/keys")["may_be_untouched"]


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        # half of the seconds are the statement's
        (descriptor_of(USED), 124.0),  # it may take 310
        (descriptor_of(USED, planned=replace(FEW, files=0)), 8.0),  # 400
        (descriptor_of(replace(USED, hop=replace(HOP, files=2))), 16.0),  # 400
        (descriptor_of(replace(USED, code=IndexCode.COSTS_MORE)), 4.0),
        (descriptor_of(), 4.0),
    ],
)
def test_runs_that_are_not_compared(found, seconds):
    assert after({}, seconds, found) == {}


def test_a_hop_counts_with_what_the_scan_would_read_without_it():
    use = replace(USED, files=3, total_files=1000, hop=HOP)
    assert after({}, 4.0, descriptor_of(use, use))["used"] == 4.0


def test_without_index_path_or_in_two_tasks_nothing_is_compared():
    assert after({}, 4.0, index_path="") == {}
    job = Job("SELECT 1", index_path="/indexes")
    assert trial_after(job, descriptor_of(USED), {"prelaunch": 1.0, "map join": 1.0}, False) == {}


def test_a_retry_finds_the_work_of_an_attempt_with_another_trial():
    job = Job("SELECT 1", index_path="/indexes")
    compared = replace(job, index_trial=IndexTrial(template_digest(job.sql), 8.0, tries=LEFT_OUT))
    assert job.digest_of_work() == compared.digest_of_work()
    assert job.digest_with({}) == compared.digest_with({})
