"""The suite notices every wrong edit of Delta's rules."""

from __future__ import annotations

import pytest

from tests.mutants.delta_edits import ON_SPARK
from tests.mutants.test_mutants import noticed_by


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("edit", "file", "words"), ON_SPARK, ids=[each.why for each, *_ in ON_SPARK]
)
def test_the_tests_notice_the_wrong_edit(tmp_path, edit, file, words):
    assert noticed_by(edit, tmp_path / "edited", file, "-k", words)
