"""The suite notices every wrong edit of Iceberg's rules and of the use of key indexes."""

from __future__ import annotations

import pytest
from packaging.version import Version

from tests.mutants import key_planner_edits
from tests.mutants.iceberg_edits import BRANCH, ON_SPARK
from tests.mutants.test_mutants import noticed_by
from tests.versions.installed import SPARK

EDITS = (*ON_SPARK, *key_planner_edits.ON_SPARK)


@pytest.mark.mutants
@pytest.mark.parametrize(("edit", "tests"), EDITS, ids=[edit.why for edit, _ in EDITS])
def test_the_tests_notice_the_wrong_edit(tmp_path, edit, tests):
    if edit.why == BRANCH and Version("4.1") <= SPARK:
        pytest.skip("there the ID of the snapshot says it too")
    assert noticed_by(edit, tmp_path / "edited", *tests)
