"""Several key queries of one statement."""

from __future__ import annotations

from threading import Barrier

import pytest

from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.keys.key_query import KeyQuery
from tests.spark.answers import ask

STATEMENT = """
SELECT f.id, g.id FROM fact f JOIN days d ON f.p = d.p
JOIN fact g ON g.q = f.id JOIN days e ON g.p = e.p JOIN odd o ON g.q = o.q
WHERE d.week = 1 AND e.week = 2
"""


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS key_sets")
    spark.sql("USE key_sets")
    fact = spark.range(60).selectExpr("id", "CAST(id % 20 AS INT) p", "CAST(id % 3 AS INT) q")
    fact.coalesce(1).write.partitionBy("p", "q").saveAsTable("fact")
    days = spark.range(20).selectExpr("CAST(id AS INT) p", "CAST(id / 7 AS INT) week")
    days.coalesce(1).write.saveAsTable("days")
    spark.sql("CREATE TABLE odd AS SELECT 1 AS q UNION ALL SELECT 2")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE key_sets CASCADE")


def kept(answer):
    return [(target.scan.alias, target.kept) for target in answer.report.descriptor.targets]


def test_all_key_queries_run_at_the_same_time(spark, tmp_path, monkeypatch):
    """No query may end before the last one has begun."""
    begun, run, pools = Barrier(3, timeout=60), KeyQuery.run, []

    def waiting(query):
        begun.wait()
        pools.append(spark.sparkContext.getLocalProperty("spark.scheduler.pool"))
        return run(query)

    alone = kept(ask(spark, tmp_path, STATEMENT))
    monkeypatch.setattr(KeyQuery, "run", waiting)
    # one table each, so that all three have the same settings
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "ours")
    try:
        assert kept(ask(spark, tmp_path, STATEMENT)) == alone == [("f", 21), ("g", 12)]
    finally:
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", None)
    assert pools[:3] == ["ours"] * 3


def test_a_key_query_that_fails_leaves_only_its_own_scan_whole(spark, tmp_path, monkeypatch):
    run = KeyQuery.run

    def failing(query):
        if "week = 1" in query.source.sql:
            raise ValueError("unreadable")
        return run(query)

    monkeypatch.setattr(KeyQuery, "run", failing)
    answer = ask(spark, tmp_path, STATEMENT)
    reasons = {found.scan.alias: found.reason for found in answer.report.descriptor.decisions}
    assert reasons == {"f": Reason.KEY_SOURCE_FAILED, "g": Reason.PRUNED}
    assert kept(answer) == [("g", 12)]


DAYS = ("1582-10-10", "1582-10-15", "2011-12-30", "2020-02-29")


@pytest.mark.parametrize("key_queries", [1, 2])
def test_ancient_days_are_right_keys_in_a_copied_session(spark, tmp_path, key_queries):
    """The session of a run is a copy that is not the JVM's active one, nor is any in a thread."""
    dates = ", ".join(f"(DATE'{day}', {at})" for at, day in enumerate(DAYS))
    spark.sql("DROP TABLE IF EXISTS dated")
    spark.sql("DROP TABLE IF EXISTS dates")
    spark.sql("CREATE TABLE dated (id INT, p DATE) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO dated SELECT n, d FROM VALUES {dates} AS v(d, n)")
    spark.sql(f"CREATE TABLE dates AS SELECT * FROM VALUES {dates} AS v(d, n)")
    sql = "SELECT f.id, d.n FROM dated f JOIN dates d ON f.p = d.d WHERE d.n <> 1"
    if key_queries == 2:
        sql += " UNION ALL SELECT f.id, d.n FROM dated f JOIN dates d ON f.p = d.d WHERE d.n = 0"
    job = Job(sql, str(tmp_path / "1.json"), Stages.BOTH, show_rows=100)
    outcome = run_job(spark, job)
    plain = sorted(tuple(map(str, row)) for row in spark.sql(sql).collect())
    assert sorted(outcome.rows) == plain
    kept = [found["kept"] for found in outcome.summary["decisions"]]
    assert kept == [3, 1][:key_queries]


def test_settings_of_key_queries_are_restored(spark, tmp_path):
    """A key query of two tables runs adaptively, the others do not."""
    sql = STATEMENT.replace("JOIN odd o ON g.q = o.q", "JOIN odd o ON g.q = o.q AND o.q = e.week")
    before = spark.conf.get("spark.sql.adaptive.enabled")
    assert kept(ask(spark, tmp_path, sql)) == [("f", 21), ("g", 6)]
    assert spark.conf.get("spark.sql.adaptive.enabled") == before
