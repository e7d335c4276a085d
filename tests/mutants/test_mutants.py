"""The suite notices every wrong edit of the soundness rules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import airflow_hive_opt
from tests.mutants import iceberg_edits, key_planner_edits
from tests.mutants.delta_edits import IN_THE_LOG, LOG_TESTS, ON_SPARK
from tests.mutants.hudi_edits import HUDI_EDITS
from tests.mutants.key_index_edits import KEY_INDEX_EDITS
from tests.mutants.worker_edits import WORKER_EDITS
from tests.mutants.wrong_edits import WRONG_EDITS, WrongEdit

PACKAGE = Path(airflow_hive_opt.__file__).parent
PROJECT = Path(__file__).parents[2]
# Seconds altogether, without Spark.
PLANNER = (
    "tests/pruning/test_into_subqueries.py",
    "tests/pruning/test_shared_ctes.py",
    "tests/pruning/test_partition_pruning.py",
    "tests/pruning/test_predicate_pushdown.py",
    "tests/rewriting/test_soundness.py",
    "tests/rewriting/test_join_elimination.py",
    "tests/rewriting/test_rewriting.py",
    "tests/rewriting/test_rewriting_safety.py",
    "tests/restriction",
    "tests/pruning",  # the rest of them
    "tests/rules/test_rules.py",  # last, because it takes the longest
)
WORKER = (
    "tests/worker/test_engine.py",
    "tests/worker/test_key_query.py",
    "tests/worker/test_partition_names.py",
    "tests/worker/test_files.py",
    "tests/worker/test_lakes.py",
    "tests/worker/test_planning.py",
)
EDITS = (*WRONG_EDITS, *WORKER_EDITS, *IN_THE_LOG)


@pytest.mark.parametrize(
    "edit",
    (
        *EDITS,
        *(edit for edit, *_ in (*ON_SPARK, *HUDI_EDITS, *iceberg_edits.ON_SPARK, *KEY_INDEX_EDITS)),
        *(edit for edit, _ in (*key_planner_edits.WITHOUT_SPARK, *key_planner_edits.ON_SPARK)),
    ),
    ids=lambda edit: f"{Path(edit.file).stem}-{edit.why}",
)
def test_the_text_of_each_wrong_edit_occurs_once(edit):
    assert (PACKAGE / edit.file).read_text().count(edit.text) == 1
    assert edit.text != edit.instead


@pytest.mark.mutants
def test_the_tests_notice_each_wrong_edit(tmp_path):
    survivors, by_file = [], Counter()
    for number, edit in enumerate(EDITS):
        by_file[edit.file] += 1
        noticed = noticed_by(edit, tmp_path / str(number))
        print(f"{edit.file:45} {edit.why[:60]:60} {noticed or 'SURVIVES'}", flush=True)
        if noticed is None:
            survivors.append(edit)
    print(*(f"{count:3} in {file}" for file, count in by_file.items()), sep="\n")
    assert survivors == []


def noticed_by(edit: WrongEdit, folder: Path, *given: str) -> str | None:
    """The first test that fails on a copy of the package with the edit; of those given, if any."""
    shutil.copytree(PROJECT / "tests", folder / "tests")
    shutil.copytree(PACKAGE, folder / PACKAGE.name)
    shutil.copy(PROJECT / "pyproject.toml", folder)
    for name in ("dags", "docs", "docker"):
        (folder / name).symlink_to(PROJECT / name)
    file = folder / PACKAGE.name / edit.file
    file.write_text(file.read_text().replace(edit.text, edit.instead))
    doctests = f"{PACKAGE.name}/{edit.file}"
    if edit in IN_THE_LOG:
        tests = LOG_TESTS
    else:
        tests = WORKER if edit.file.startswith("worker/") else PLANNER
    failed = first_failure(folder, *given or (doctests, *tests))
    shutil.rmtree(folder)
    return failed


def first_failure(folder: Path, *tests: str) -> str | None:
    """The first test that fails, or ``None``; a run that ends in another way is an error."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    assert lines, f"no test has failed, but the run ended with an error: {done.stdout[-2000:]}"
    return lines[0].removeprefix("FAILED ")[:100]
