"""Runs that do not read keys which matched nearly all partitions before."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task import earlier_runs
from airflow_hive_opt.provider.earlier_runs import skipped_keys_in
from tests.spark.shared_keys import counted
from tests.spark.stages import join, prune

ALL = "SELECT f.id, d.week FROM fact f JOIN days d ON f.p = d.p WHERE d.week >= :week"
LATE = {"week": 2}


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS earlier")
    spark.sql("USE earlier")
    fact = spark.range(60).selectExpr("id", "CAST(id % 20 AS INT) p")
    fact.coalesce(1).write.partitionBy("p").saveAsTable("fact")
    days = spark.range(1, 60).selectExpr("CAST(id AS INT) % 20 p", "CAST(id / 7 AS INT) week")
    days.coalesce(1).write.saveAsTable("days")
    spark.sql("CREATE TABLE once AS SELECT DISTINCT p FROM days")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE earlier CASCADE")


@pytest.fixture
def asked(monkeypatch):
    """The sources whose key query has run."""
    return counted(monkeypatch)


def run_after(spark, tmp_path, sql, summary, parameters):
    """The summary of a run that knows the summary of the run before it; compares the rows."""
    job = Job(
        sql, parameters=parameters, skipped_keys=skipped_keys_in(summary), show_rows=1_000_000
    )
    path = UPath(tmp_path / "descriptor.json")
    result = join(spark, job, prune(spark, job, path), path)
    plain = spark.sql(sql, args=parameters).collect()
    assert sorted(result.rows) == sorted(map(tuple, plain))
    return result.report.summary()


def reasons(summary):
    return [found["reason"] for found in summary["decisions"]]


def test_some_runs_do_not_read_keys_that_matched_all_partitions_before(
    spark, tmp_path, asked, monkeypatch
):
    monkeypatch.setattr(earlier_runs, "RUNS_WITHOUT_KEYS", 3)
    early = {"week": 0}
    summary = run_after(spark, tmp_path, ALL, None, early)
    assert (reasons(summary), asked) == (["ALL_PARTITIONS_MATCH"], ["days"])
    for runs in range(1, 4):
        summary = run_after(spark, tmp_path, ALL, summary, early)
        assert reasons(summary) == ["NOT_ASKED_AGAIN"]
        assert summary["decisions"][0]["skipped_keys"]["runs"] == runs
    assert asked == ["days"]
    summary = run_after(spark, tmp_path, ALL, summary, early)
    assert (reasons(summary), asked) == (["ALL_PARTITIONS_MATCH"], ["days", "days"])
    assert summary["decisions"][0]["skipped_keys"]["runs"] == 0


def test_a_changed_parameter_condition_or_table_reads_the_keys_again(spark, tmp_path, asked):
    """Another parameter, another condition of the small table, another table."""
    first = run_after(spark, tmp_path, ALL, None, {"week": 0})
    for sql, parameters in (
        (ALL, LATE),
        (ALL + " AND d.p < 3", {"week": 0}),
        (ALL.replace("FROM fact", "FROM (SELECT * FROM fact)"), LATE),
    ):
        asked.clear()
        run_after(spark, tmp_path, sql, first, parameters)
        assert asked == ["days"]


def test_keys_that_matched_nearly_all_partitions_are_not_read_again(spark, tmp_path, asked):
    sql = ALL + " AND d.p > 0"
    first = run_after(spark, tmp_path, sql, None, {"week": 0})
    (decision,) = first["decisions"]
    assert (decision["reason"], decision["kept"], decision["total"]) == ("PRUNED", 19, 20)
    assert reasons(run_after(spark, tmp_path, sql, first, {"week": 0})) == ["NOT_ASKED_AGAIN"]
    assert asked == ["days"]


def test_keys_that_save_partitions_or_a_join_are_read_again(spark, tmp_path):
    few = run_after(spark, tmp_path, ALL + " AND d.p < 3", None, LATE)
    assert "skipped_keys" not in few["decisions"][0]
    # each key once, and no other column is read: the join itself is removed
    unique = "SELECT f.id FROM fact f JOIN once d ON f.p = d.p WHERE d.p > 0"
    found = run_after(spark, tmp_path, unique, None, {})
    assert [each["table"] for each in found["eliminated"]] == ["earlier.once"]
    assert (found["kept"], "skipped_keys" in found["decisions"][0]) == (19, False)


def test_of_two_scans_with_one_key_query_only_one_saves_a_join(spark, tmp_path):
    """No join is removed where the scan is that of a view."""
    spark.sql("CREATE OR REPLACE VIEW seen AS SELECT * FROM fact")
    one = "SELECT f.id FROM {} f JOIN once d ON f.p = d.p WHERE d.p > 0"
    sql = f"{one.format('fact')} UNION ALL {one.format('seen')}"
    first = run_after(spark, tmp_path, sql, None, {})
    assert ["skipped_keys" in each for each in first["decisions"]] == [False, True]
    second = run_after(spark, tmp_path, sql, first, {})
    assert reasons(second) == ["PRUNED", "NOT_ASKED_AGAIN"]
    assert len(second["eliminated"]) == 1


@pytest.mark.parametrize("text", ["", "skipped_keys"])
def test_malformed_summaries_of_earlier_runs_are_ignored(text):
    assert skipped_keys_in({"decisions": [{"skipped_keys": text}, text]}) == {}
    assert skipped_keys_in({"decisions": text}) == {}


def test_only_the_scan_that_keys_prune_reads_them_again(spark, tmp_path, asked):
    sql = (
        "SELECT f.id, g.id FROM fact f JOIN days d ON f.p = d.p "
        "JOIN fact g ON f.id = g.id JOIN once e ON g.p = e.p WHERE e.p < 3"
    )
    first = run_after(spark, tmp_path, sql, None, {})
    assert reasons(first) == ["ALL_PARTITIONS_MATCH", "PRUNED"]
    assert sorted(asked) == ["days", "once"]
    asked.clear()
    assert reasons(run_after(spark, tmp_path, sql, first, {})) == ["NOT_ASKED_AGAIN", "PRUNED"]
    assert asked == ["once"]
