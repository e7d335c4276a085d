"""The suite notices every wrong edit of Hudi's rules."""

from __future__ import annotations

import pytest

from tests.mutants.hudi_edits import HUDI_EDITS
from tests.mutants.test_mutants import noticed_by


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("edit", "file", "words"), HUDI_EDITS, ids=[each.why for each, *_ in HUDI_EDITS]
)
def test_the_tests_notice_the_wrong_edit(tmp_path, edit, file, words):
    assert noticed_by(edit, tmp_path / "edited", file, "-k", words)
