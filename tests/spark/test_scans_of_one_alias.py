"""Scans that share an alias, from the local task to the pages: none gets the facts of another."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.documents.figures import figures_in, figures_of
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.documents.report import decision_lines, read_report, report_path
from airflow_hive_opt.pages.history import history
from airflow_hive_opt.pages.instance import Known, instance_of, partitions_of
from airflow_hive_opt.pages.task_run import InstanceKey, TaskRun
from airflow_hive_opt.pruning import scan_way
from airflow_hive_opt.spark.application.run import run_job
from tests.spark.answers import ask

JOIN = "JOIN keys k ON f.p = k.p AND k.id"
SQL = f"""SET spark.sql.shuffle.partitions=2;
WITH many AS (SELECT f.id FROM fact f {JOIN} < 15)
SELECT f.id FROM fact f LEFT JOIN keys k ON f.p = k.p WHERE f.id < 5
UNION ALL SELECT f.id FROM fact f {JOIN} < 2
UNION ALL SELECT f.id FROM many f
UNION ALL SELECT f.id FROM hours f JOIN fact g ON g.id = f.id AND f.id < 3 {JOIN} < 1"""
STATEMENT = SQL.partition("\n")[2]
NAMES = ["f (line 2)", "f (line 3)", "f (line 4)", "f (line 6)", "g"]
# Reason, partitions kept and in total, and Spark's lookup, by name.
FACTS = {
    "f (line 2)": ("PRUNED", 15, 20, "names"),
    "f (line 3)": ("PRESERVED_SIDE", None, None, None),
    "f (line 4)": ("PRUNED", 2, 20, "filter"),
    "f (line 6)": ("PRUNED", 1, 10, "filter"),
    "g": ("NO_CONDITION_ON_PARTITION_COLUMN", None, None, None),
}


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS one_alias")
    spark.sql("USE one_alias")
    for name, partitions in (("fact", 20), ("hours", 10)):
        frame = spark.range(100).selectExpr("id", f"CAST(id % {partitions} AS INT) p")
        frame.coalesce(1).write.partitionBy("p").saveAsTable(name)
    keys = spark.range(40).selectExpr("id", "CAST(id AS INT) p")
    keys.coalesce(1).write.saveAsTable("keys")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE one_alias CASCADE")


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """Ten values are too many for a filter."""
    monkeypatch.setattr(scan_way, "VALUES_A_SCAN", 10)


def facts(found):
    return {
        each["scan"]: tuple(each.get(name) for name in ("reason", "kept", "total", "way"))
        for each in found
    }


def test_scans_that_share_an_alias_read_their_own_partitions(spark, tmp_path):
    listed = STATEMENT
    for most in (15, 2, 1):
        values = ", ".join(map(str, range(most)))
        listed = re.sub(rf"k\.id < {most}\b", rf"\g<0> AND f.p IN ({values})", listed)
    answer = ask(spark, tmp_path, STATEMENT, literal=listed)
    kept = {target.scan.name: target.kept for target in answer.descriptor.targets}
    assert kept == {"f (line 1)": 15, "f (line 3)": 2, "f (line 5)": 1}
    assert answer.partitions_fetched < answer.plain.partitions_fetched


@pytest.fixture(params=["one application", "two applications"])
def ran(spark, tmp_path, request):
    """The outcome and the path of the attempt that ran the statement."""
    path = str(tmp_path / "1.json")
    both = Job(SQL, path, Stages.BOTH, show_rows=1000)
    if request.param == "one application":
        return run_job(spark, both), UPath(path)
    pruned = run_job(spark, Job(SQL, path, Stages.LOCAL_TASK)).summary
    second = tmp_path / "2.json"
    handed = {"descriptor": path, "digest": pruned["digest"], "show_rows": 1000}
    return run_job(spark, Job(SQL, str(second), Stages.MAP_JOIN, **handed)), UPath(second)


def test_scans_that_share_an_alias_have_their_own_facts_in_reports(spark, ran):
    outcome, path = ran
    assert outcome.status is Status.DONE
    plain = spark.sql(STATEMENT).collect()
    assert sorted(outcome.rows) == sorted((str(row.id),) for row in plain)
    summary = json.loads(json.dumps(outcome.summary))  # as in XCom
    descriptor = load(UPath(summary["uri"]))

    assert sorted(found.scan.name for found in descriptor.decisions) == NAMES
    for target in descriptor.targets:
        start, stop = target.scan.position
        assert SQL[start:stop] == target.text
        assert f"(line {SQL[:start].count(chr(10)) + 1})" in target.scan.name
        assert (target.kept, target.total) == FACTS[target.scan.name][1:3]

    assert facts(summary["decisions"]) == FACTS
    stored = read_report(report_path(path))
    assert stored.summary == summary
    lines = [" ".join(line.split()) for line in decision_lines(summary["decisions"])]
    assert "f (line 4) one_alias.fact 2 of 20 PRUNED (fast)" in lines
    text = descriptor_to_text(descriptor)
    assert "f (line 4) (one_alias.fact): PRUNED" in text
    assert "fact.p of f (line 2) by 15 keys of keys" in outcome.message
    assert "f (line 3) reads all partitions, PRESERVED_SIDE" not in outcome.message


@pytest.mark.parametrize("gone", [False, True], ids=["descriptor", "XCom alone"])
def test_the_page_shows_both_scans_of_one_alias(spark, ran, gone):
    outcome, path = ran
    summary = json.loads(json.dumps(outcome.summary))
    descriptor = load(UPath(summary["uri"]))
    at = datetime(2026, 1, 1, tzinfo=timezone.utc)
    figures = figures_of(summary)
    assert figures_in(json.loads(json.dumps(figures.to_json()))) == figures
    run = TaskRun(InstanceKey("d", "t", "r", -1), figures, at, at, 1, "success", at, 1.0)
    known = Known(
        run,
        {"return_value": summary},
        {"sql": SQL},
        None if gone else descriptor,
        read_report(report_path(path)),
        "deleted" if gone else "there",
        "",
    )
    page = instance_of(known)
    assert facts(scan.model_dump() for scan in page.scans) == FACTS
    for scan in page.scans:
        assert scan.place is not None
        assert (scan.place.start, scan.place.stop) == scan.reference
        assert scan.scan in ("g", f"f (line {scan.place.line})")
    for target in descriptor.targets:
        listed = partitions_of(target, "", 0, None)
        (scan,) = (each for each in page.scans if each.reference == listed.reference)
        assert (scan.scan, scan.kept) == (listed.scan, listed.found)

    changed = {"f (line 4)": "KEY_SOURCE_FAILED"}
    scans = tuple((name, changed.get(name, reason)) for name, reason in figures.scans)
    later = TaskRun(
        InstanceKey("d", "t", "r2", -1),
        figures_of({**summary, "decisions": [{"scan": n, "reason": r} for n, r in scans]}),
        *(at, at, 1, "success", at, 1.0),
    )
    newest = history("d", "t", [later, run], []).runs[0]
    assert newest.change == "f (line 4): PRUNED until run r, then KEY_SOURCE_FAILED"


def test_the_log_names_each_scan_of_an_alias_with_its_line(spark, tmp_path, caplog):
    caplog.set_level("INFO", logger="airflow_hive_opt")
    run_job(spark, Job(SQL, str(tmp_path / "1.json"), Stages.BOTH))
    for name in ("f (line 2) by names", "f (line 4) by filter", "f (line 6) by filter"):
        assert f"Spark looks up the partitions of {name}" in caplog.text
    assert "f (line 3) reads all partitions, PRESERVED_SIDE" in caplog.text


def test_a_removed_join_is_reported_at_its_own_place(spark, tmp_path):
    spark.sql("CREATE TABLE IF NOT EXISTS result (id BIGINT) USING parquet")
    select = f"SELECT f.id FROM fact f {JOIN} < 2\nUNION ALL SELECT k.id FROM fact f {JOIN} < 3"
    sql = f"INSERT OVERWRITE TABLE result {select}"
    outcome = run_job(spark, Job(sql, str(tmp_path / "1.json"), Stages.BOTH))
    (left_out,) = outcome.summary["eliminated"]
    assert (left_out["scan"], left_out["table"]) == ("k (line 1)", "one_alias.keys")
    assert sql[slice(*left_out["reference"])] == "keys"
    assert sorted(spark.table("result").collect()) == sorted(spark.sql(select).collect())
