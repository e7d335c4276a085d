"""Long statements on Spark: what the local task asks of it, and what it passes through."""

from __future__ import annotations

from collections import Counter

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession
from upath import UPath

from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application import planning
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.statement import parse as parsing
from tests.long_statements import exists, in_list, in_list_of_partitions, joins, parentheses, values
from tests.spark.answers import ask
from tests.spark.stages import prune

SHORT = "SELECT f.id FROM fact f JOIN dim d ON f.p = d.k WHERE d.w = 1"


@pytest.fixture(scope="module", autouse=True)
def database(spark):
    spark.sql("CREATE DATABASE planned")
    rows = spark.range(40).selectExpr("id", "id AS v", "CAST(id % 20 AS INT) AS p")
    rows.repartition(1).write.partitionBy("p").saveAsTable("planned.fact")
    keys = spark.range(30).selectExpr("CAST(id AS INT) AS k", "CAST(id AS INT) AS w")
    keys.coalesce(1).write.saveAsTable("planned.dim")
    yield
    spark.sql("DROP DATABASE planned CASCADE")


@pytest.fixture
def session(spark):
    found = spark.newSession()
    found.sql("USE planned")
    return found


@pytest.fixture
def jvm_calls(monkeypatch):
    """Counts the calls of methods in the JVM."""
    calls = Counter()
    real = ClientServerConnection.send_command

    def send(self, command):
        calls["methods"] += command.startswith("c\n")  # not what Python's collector frees
        return real(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", send)
    return calls


def pruned(session, folder, sql, **switches):
    return prune(session, Job(sql, switches=switches), UPath(folder) / "descriptor.json")


@pytest.mark.parametrize(
    ("make", "few", "many"),
    [(in_list, 50, 500), (in_list_of_partitions, 50, 500), (values, 500, 1000), (joins, 20, 40)],
)
def test_a_longer_statement_needs_no_more_jvm_calls(session, tmp_path, jvm_calls, make, few, many):
    counts = []
    for parts in (few, few, many):  # the first one also looks up what is then cached
        jvm_calls.clear()
        pruned(session, tmp_path, make(parts))
        counts.append(jvm_calls["methods"])
    assert 0 < counts[2] <= counts[1]


def test_a_run_parses_its_statement_once(session, tmp_path, monkeypatch):
    parsing._parsed.cache_clear()
    read, real = [], parsing._tree
    monkeypatch.setattr(parsing, "_tree", lambda text: [read.append(text), real(text)][1])
    job = Job(exists(5), str(tmp_path / "1.json"), Stages.BOTH)
    assert run_job(session, job).status is Status.DONE
    assert read.count(exists(5)) == 1


@pytest.mark.slow
def test_a_scan_with_more_than_16_key_queries_has_plain_sparks_rows(session, tmp_path):
    listed = f"{joins(25)} WHERE f.p IN (0, 1, 2, 3, 4, 5, 6, 7, 8)"
    found = ask(session, tmp_path, joins(25), literal=listed)
    assert sorted(found.rows) == [(number,) for number in (*range(9), *range(20, 29))]
    assert (found.target.kept, len(found.target.sources)) == (9, 16)


def test_all_conditions_are_analysed_in_one_query(session, tmp_path, monkeypatch):
    texts, real = [], SparkSession.sql

    def sql(self, text, **more):
        texts.append(text)
        return real(self, text, **more)

    monkeypatch.setattr(SparkSession, "sql", sql)
    conditions = " AND ".join(f"f.p <> {100 + number}" for number in range(20))
    report = pruned(session, tmp_path, f"{SHORT} AND {conditions}")
    assert [each.kept for each in report.descriptor.targets] == [1]
    assert len([text for text in texts if "<> 119" in text]) == 1


def test_a_random_condition_is_ignored_and_the_others_prune(session, tmp_path):
    changing = session.newSession()
    changing.sql("USE planned")
    rand = "org.apache.hadoop.hive.ql.udf.UDFRand"
    changing.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION abs AS '{rand}'")
    sql = "SELECT f.id FROM fact f WHERE abs(f.p) < 9 AND f.p <> 0 AND f.p < 3"
    found = ask(changing, tmp_path, sql, literal=f"{sql} AND f.p IN (1, 2)")
    assert sorted(found.rows) == [(1,), (2,), (21,), (22,)]
    assert (found.target.kept, found.reasons) == (2, {"f": "PRUNED"})


def test_a_statement_with_planning_seconds_zero_passes_through(session, tmp_path):
    report = pruned(session, tmp_path, SHORT, planning_seconds=0)
    (decision,) = report.descriptor.decisions
    assert (decision.scan.name, decision.reason) == ("the statement", "PLANNING_TOO_LONG")
    assert decision.message == (
        "the planning of the statement takes longer than planning_seconds, so it passes through "
        "to Spark"
    )
    assert report.descriptor.targets == ()


@pytest.mark.parametrize("stages", [Stages.BOTH, Stages.LOCAL_TASK])
def test_a_statement_that_passes_through_has_plain_sparks_rows(session, tmp_path, stages):
    job = Job(SHORT, str(tmp_path / "1.json"), stages, switches={"planning_seconds": 0})
    outcome = run_job(session, job)
    assert outcome.summary["reason"] == "PLANNING_TOO_LONG"
    if stages is Stages.BOTH:
        assert sorted(outcome.rows) == [("1",), ("21",)]


@pytest.mark.parametrize("sql", [parentheses(60), in_list(100_000)], ids=["deep", "long"])
def test_spark_does_not_parse_a_statement_that_is_too_complex_to_plan(
    session, tmp_path, monkeypatch, sql
):
    asked = []
    monkeypatch.setattr(planning, "accepts", lambda *arguments: asked.append(arguments))
    report = pruned(session, tmp_path, sql)
    (decision,) = report.descriptor.decisions
    assert (decision.reason, asked) == ("PASSED_THROUGH", [])
    assert "to be planned" in decision.message


def test_a_deeply_nested_statement_runs_unchanged(session, tmp_path):
    outcome = run_job(session, Job(parentheses(60), str(tmp_path / "1.json"), Stages.BOTH))
    assert outcome.rows == (("1",),)
