"""Rewritten statements on Spark: fewer scans and shuffles, and what Spark's analysis forbids."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.planner.rewriting import Refusal
from airflow_hive_opt.planner.settings import Settings
from airflow_hive_opt.spark.application import Request, join, prune
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.correlate import correlate, shuffles_and_scans

ON = Settings.of({"hive.optimize.correlation": "true"})
SQL = "SELECT k FROM {0} a WHERE v < (SELECT avg(v) FROM {0} b WHERE b.k = a.k)"


@pytest.fixture(scope="module")
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS correlate")
    spark.sql("USE correlate")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    frame = spark.sql("SELECT CAST(id % 7 AS int) AS k, CAST(id AS int) AS v FROM range(40)")
    frame.write.mode("overwrite").saveAsTable("plain")
    for name in ("left_buckets", "right_buckets"):
        frame.write.mode("overwrite").bucketBy(2, "k").sortBy("k").saveAsTable(name)
    spark.sql("CREATE OR REPLACE VIEW odd AS SELECT k, v FROM plain WHERE rand() < 0.5")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    spark.sql("USE default")
    spark.sql("DROP DATABASE correlate CASCADE")


def test_one_scan_and_one_shuffle_are_left(spark, tables):
    sql = SQL.format("plain")
    found = correlate(spark, SparkCatalog(spark), sql, ON)
    assert found.applied == ("self_join_window",)
    assert shuffles_and_scans(spark.sql(sql)) == (2, 2)
    assert shuffles_and_scans(spark.sql(found.sql)) == (1, 1)
    assert sorted(spark.sql(found.sql).collect()) == sorted(spark.sql(sql).collect())


def test_a_view_that_hides_rand_is_left_alone(spark, tables):
    sql = SQL.format("odd")
    found = correlate(spark, SparkCatalog(spark), sql, ON)
    assert (found.sql, found.applied) == (sql, ())
    assert ("self_join_window", Refusal.NOT_DETERMINISTIC) in found.refused


def test_tables_bucketed_alike_join_without_a_shuffle(spark, tables):
    sql = "SELECT l.k, r.v FROM left_buckets l JOIN right_buckets r ON l.k = r.k"
    assert shuffles_and_scans(spark.sql(sql)) == (0, 2)
    assert shuffles_and_scans(spark.sql(sql.replace("right_buckets", "plain"))) == (1, 2)


def test_a_run_rewrites_where_it_is_asked_to(spark, tables, tmp_path):
    sql = SQL.format("plain")
    path = UPath(tmp_path) / "1.json"
    rows = sorted(map(tuple, spark.sql(sql).collect()))
    for settings, rewritten in ((ON, True), (Settings.of(), False)):
        request = Request(sql, settings=settings, max_rows=100)
        result = join(spark, request, prune(spark, request, path), path)
        assert sorted(result.rows) == rows
        assert (result.report.descriptor.statement is not None) == rewritten
        assert ("OVER (PARTITION BY" in result.statement) == rewritten
