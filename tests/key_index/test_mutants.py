"""The suite notices every wrong edit of the key index, and of the plans with keys for it."""

from __future__ import annotations

import pytest

from tests.mutants.key_index_edits import KEY_INDEX_EDITS
from tests.mutants.key_planner_edits import WITHOUT_SPARK
from tests.mutants.test_mutants import noticed_by


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("edit", "tests"), (*KEY_INDEX_EDITS, *WITHOUT_SPARK), ids=lambda each: str(each)[:60]
)
def test_the_tests_notice_the_wrong_edit(tmp_path, edit, tests):
    assert noticed_by(edit, tmp_path / "edited", *tests)
