"""Of two submissions of one task, the older one does not begin, or the newer one sees it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from upath import UPath

from airflow_hive_opt.documents import claims
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
    assert claims.newest(first) == claims.Claim("b", "2", "same")
    with pytest.raises(claims.Superseded, match="a newer attempt"):
        claims.begin(first, "a", "application_1")
    assert claims.begin(second, "b", "application_2") is None


def test_a_driver_learns_since_when_those_before_it_may_have_written(tmp_path):
    path = UPath(tmp_path / "2.json")
    claims.take(path, "b", "same", 12.5)
    assert claims.begin(path, "b", "application_2") == 12.5


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
            own.write(claims.Claim("b", "2", "same"), claims._claim_path(new))
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
