"""The suite notices every wrong edit of Iceberg's rules and of the use of key indexes."""

from __future__ import annotations

import pytest

from tests.mutants import key_planner_edits
from tests.mutants.iceberg_edits import ON_SPARK
from tests.mutants.test_mutants import noticed_by


@pytest.mark.mutants
@pytest.mark.parametrize(
    ("edit", "tests"), (*ON_SPARK, *key_planner_edits.ON_SPARK), ids=lambda each: str(each)[:60]
)
def test_the_tests_notice_the_wrong_edit(tmp_path, edit, tests):
    assert noticed_by(edit, tmp_path / "edited", *tests)
