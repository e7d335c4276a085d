"""What the matrix promises, without its environments."""

from __future__ import annotations

import pytest

from tests.versions import matrix


def test_every_supported_version_is_in_a_pair():
    airflow = {pair.airflow.rpartition(".")[0] for pair in matrix.PAIRS}
    spark = {pair.pyspark.rpartition(".")[0] for pair in matrix.PAIRS}
    python = {pair.python for pair in matrix.PAIRS}
    assert airflow == {"2.11", "3.0", "3.1", "3.2", "3.3"}
    assert spark == {"3.5", "4.0", "4.1", "4.2", "4.3"}
    assert python == {"3.10", "3.11", "3.12", "3.13"}


def test_an_unknown_pair_is_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(matrix, "run", lambda pair: pytest.fail(f"{pair} has run"))
    with pytest.raises(SystemExit, match="no pair nearest"):
        matrix.main("newest", "nearest")


def test_a_run_that_left_no_report_has_failed(tmp_path):
    assert matrix.counts(tmp_path / "tests.xml") == (0, 1, 0)


def test_only_failures_of_a_test_run_are_printed():
    log = "....F.. [100%]\n=== FAILURES ===\nE  assert 1 == 2\nFAILED tests/test_a.py::test_a\n"
    assert matrix.failures(log) == log.partition("\n")[2]
    assert matrix.failures("no module named pytest\n") == "no module named pytest\n"


def test_counts_of_tests_are_read_from_the_report(tmp_path):
    report = tmp_path / "tests.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/></testsuites>'
    )
    assert matrix.counts(report) == (3, 3, 3)
