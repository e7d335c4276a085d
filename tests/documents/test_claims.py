"""Of two submissions of one task, the older one does not begin, or the newer one sees it."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Outcome, Status, write_outcome
from airflow_hive_opt.documents.storage import DescriptorError


def test_a_submission_without_any_claim_begins(tmp_path):
    path = UPath(tmp_path / "1.json")
    before = time.time()
    assert claims.begin(path, "a", "application_1") is None
    found = claims.begun(path, "a")
    assert found == claims.Begun("a", "application_1", found.began)
    assert before <= found.began <= time.time()
    assert claims.begun(path, "b") is None
    assert claims.begun(UPath(tmp_path / "2.json"), "a") is None


def test_only_the_newest_submission_begins(tmp_path):
    first, second = UPath(tmp_path / "1.json"), UPath(tmp_path / "2.json")
    claims.take(first, "a", "same")
    claims.take(second, "b", "same")
    with pytest.raises(claims.Superseded, match="a newer attempt"):
        claims.begin(first, "a", "application_1")
    claims.begin(second, "b", "application_2")


def began(path, token):
    """When the statement of the driver begins, and since when those before it may have written."""
    since = claims.begin(path, token, "application")
    return claims.begun(path, token).began, since


@pytest.fixture
def attempts(tmp_path):
    return [UPath(tmp_path / f"{number}.json") for number in (9, 10, 11)]


@pytest.mark.parametrize(
    ("outcome", "is_told"),
    [
        (None, True),
        (Outcome(Status.FAILED, "its words", may_have_written=True), True),
        (Outcome(Status.FAILED, "its words"), False),
        (Outcome(Status.REFUSED, "its words"), False),
    ],
)
def test_a_driver_learns_since_when_those_before_it_may_have_written(attempts, outcome, is_told):
    first, second, third = attempts
    claims.take(first, "a", "same")
    began_first, since = began(first, "a")
    assert since is None
    if outcome is not None:
        write_outcome(replace(outcome, token="a"), first)
    claims.take(second, "b", "same")
    claims.take(second, "b", "same")  # does nothing more
    began_second, since = began(second, "b")
    assert since == (began_first if is_told else None)
    claims.take(third, "c", "same")
    assert began(third, "c")[1] == (began_first if is_told else began_second)


def test_a_driver_learns_that_one_before_it_has_written_whatever_the_clocks_say(attempts):
    claims.take(attempts[0], "a", "same")
    began(attempts[0], "a")
    write_outcome(Outcome(Status.DONE, "its words", token="a"), attempts[0])
    claims.take(attempts[1], "b", "same")
    assert began(attempts[1], "b")[1] == 0.0


def test_any_failure_counts_of_a_statement_that_commits_in_steps(attempts):
    first, second, _ = attempts
    claims.take(first, "a", "same")
    found, _ = began(first, "a")
    write_outcome(Outcome(Status.FAILED, "its words", token="a"), first)
    claims.take(second, "b", "same")
    assert claims.begin(second, "b", "application", in_steps=True) == found


def test_one_that_died_before_it_began_hides_none_before_it(attempts):
    first, second, third = attempts
    claims.take(first, "a", "same")
    found, _ = began(first, "a")
    claims.take(second, "b", "same")
    claims.take(third, "c", "same")
    assert began(third, "c")[1] == found


def test_other_work_and_a_run_that_was_created_again_know_nothing_of_it(attempts):
    first, second, _ = attempts
    claims.take(first, "a", "same")
    began(first, "a")
    claims.take(second, "b", "cleared")
    assert began(second, "b")[1] is None
    claims.take(first, "c", "cleared")
    assert began(first, "c")[1] is None


def test_a_driver_that_is_started_again_learns_it_of_itself(attempts):
    claims.take(attempts[0], "a", "same")
    found, since = began(attempts[0], "a")
    assert since is None
    assert began(attempts[0], "a") == (found, found)


def test_a_refusal_may_hide_what_a_driver_of_the_same_job_has_written(attempts):
    """Such as the refusal of one that was started again."""
    first, second, _ = attempts
    claims.take(first, "a", "same")
    found, _ = began(first, "a")
    write_outcome(Outcome(Status.REFUSED, "its words", token="a", may_have_written=True), first)
    claims.take(second, "b", "same")
    assert began(second, "b")[1] == found


def test_documents_that_can_not_be_trusted_block_no_later_attempt(attempts, tmp_path, caplog):
    first, second, third = attempts
    claims.take(first, "a", "same")
    began(first, "a")
    (tmp_path / "9.begun.json").write_text("{}")
    claims.take(second, "b", "same")
    assert began(second, "b")[1] == 0.0
    (tmp_path / "claim.json").write_text("{}")
    claims.take(third, "c", "same")
    assert "look for rows that are there twice" in caplog.text
    assert began(third, "c")[1] is None


@pytest.mark.parametrize(
    ("claims_at", "looks_at"), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
)
def test_the_old_driver_ends_or_the_new_submission_sees_it(
    tmp_path, monkeypatch, claims_at, looks_at
):
    """The new one acts before the driver begins (0), between its two steps (1), or after (2)."""
    old, new = UPath(tmp_path / "1.json"), UPath(tmp_path / "2.json")
    claims.take(old, "a", "same")
    sees = []
    own = claims._CLAIM

    def acts(at):
        if at == claims_at:
            own.write(claims.Claim(claims.Submission("2", "b"), "same"), claims._claim_path(new))
        if at == looks_at:
            sees.append(claims.begun(old, "a") is not None)

    def read(path):
        acts(1)
        return own.read(path)

    monkeypatch.setattr(claims, "_CLAIM", SimpleNamespace(read=read))
    acts(0)
    try:
        claims.begin(old, "a", "x")
        began = True
    except claims.Superseded:
        began = False
    acts(2)
    assert sees == [looks_at > 0]
    assert began is (claims_at == 2)
    assert sees[0] or not began


def test_a_damaged_claim_lets_nothing_begin(tmp_path):
    path = UPath(tmp_path / "1.json")
    claims.take(path, "a", "same")
    (tmp_path / "claim.json").write_text("{}")
    with pytest.raises(DescriptorError, match="the claim .* is refused"):
        claims.begin(path, "a", "")


def test_a_claim_leads_to_no_other_folder(tmp_path):
    path = UPath(tmp_path / "1.json")
    claims.take(path, "a", "same")
    claim = tmp_path / "claim.json"
    found = json.loads(claim.read_text())
    del found["sha256"]
    found["newest"]["attempt"] = "../1"
    found["sha256"] = hashlib.sha256(json.dumps(found, separators=(",", ":")).encode()).hexdigest()
    claim.write_text(json.dumps(found))
    with pytest.raises(DescriptorError, match="attempt must be a number"):
        claims.begin(path, "a", "")
