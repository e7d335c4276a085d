"""Rewritten statements on Spark: fewer scans and shuffles, and what Spark's analysis forbids."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.explain.plan_text import explain, explanation_to_json
from airflow_hive_opt.rewriting import Refusal
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.correlate import (
    StatisticsCatalog,
    broadcasting,
    correlate,
    shuffles_and_scans,
    work_on_spark,
)
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.catalog import Buckets
from airflow_hive_opt.statement.settings import Settings
from tests.spark.stages import job_of, join, prune

ON = Settings.of({"hive.optimize.correlation": "true"})
SQL = "SELECT k FROM {0} a WHERE v < (SELECT avg(v) FROM {0} b WHERE b.k = a.k)"


LARGE = ("plain", "odd_names", "plain_by_day")


class Sized(SparkCatalog):
    """As if some tables were large."""

    def table(self, name):
        found = super().table(name)
        return replace(found, total_bytes=10**9 if name in LARGE else 10**7)


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
    spark.sql("CREATE OR REPLACE VIEW some AS SELECT k, v FROM plain LIMIT 30")
    spark.sql(
        "CREATE TABLE hive_buckets (k int, v int) CLUSTERED BY (k) SORTED BY (k) INTO 2 BUCKETS "
        "STORED AS PARQUET"
    )
    spark.sql(
        "CREATE TABLE odd_names USING parquet AS SELECT CAST(id % 3 AS int) AS k, "
        "CAST(id AS int) AS v, IF(id = 2, 'eve', 'bob') AS current_user, "
        "named_struct('f', id + 7) AS info, 'YEAR' AS fmt, DATE'2024-05-06' AS day FROM range(6)"
    )
    spark.sql("ANALYZE TABLE plain COMPUTE STATISTICS FOR COLUMNS k, v")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    spark.sql("USE default")
    spark.sql("DROP DATABASE correlate CASCADE")


def test_a_rewritten_scalar_subquery_has_one_scan_and_one_shuffle(spark, tables):
    sql = SQL.format("plain")
    found = correlate(spark, SparkCatalog(spark), sql, ON)
    assert found.applied == ("self_join_window",)
    assert shuffles_and_scans(spark.sql(sql)) == (2, 2)
    assert shuffles_and_scans(spark.sql(found.sql)) == (1, 1)
    assert sorted(spark.sql(found.sql).collect()) == sorted(spark.sql(sql).collect())


@pytest.mark.parametrize("view", ["odd", "some"])
def test_a_view_with_rand_or_limit_is_not_rewritten(spark, tables, view):
    sql = SQL.format(view)
    found = correlate(spark, SparkCatalog(spark), sql, ON)
    assert (found.sql, found.applied) == (sql, ())
    assert ("self_join_window", Refusal.NOT_DETERMINISTIC) in found.refused


def test_spark_joins_equally_bucketed_tables_without_a_shuffle(spark, tables):
    sql = "SELECT l.k, r.v FROM left_buckets l JOIN right_buckets r ON l.k = r.k"
    assert shuffles_and_scans(spark.sql(sql)) == (0, 2)
    assert shuffles_and_scans(spark.sql(sql.replace("right_buckets", "plain"))) == (1, 2)


def test_buckets_and_statistics_are_read_from_the_catalog(spark, tables):
    catalog = StatisticsCatalog(SparkCatalog(spark), ["k"])
    assert catalog.table("plain").distinct_keys(["k"]) == 7
    assert catalog.table("plain").buckets is None
    for name, by_spark in (("left_buckets", True), ("hive_buckets", False)):
        assert catalog.table(name).buckets == Buckets(("k",), 2, (("k", "asc"),), by_spark)


def test_explain_says_where_spark_joins_without_a_shuffle(spark, tables):
    catalog = StatisticsCatalog(SparkCatalog(spark), [])
    options = {"hive.auto.convert.join": "false"}
    work = partial(work_on_spark, spark)
    for one, other, strategy, shuffles in (
        ("left_buckets", "right_buckets", "bucketed", 0),
        ("left_buckets", "plain", "sort-merge", 1),
        ("hive_buckets", "hive_buckets", "sort-merge", 2),
    ):
        sql = f"SELECT l.k FROM {one} l JOIN {other} r ON l.k = r.k"
        with conf_set(spark, {"spark.sql.adaptive.enabled": "true"}):  # no shuffle is used twice
            found = explanation_to_json(explain(sql, catalog, options, work))
        (join,) = found["on_spark"]["joins"]
        assert join["strategy"] == strategy
        assert ("buckets that Hive wrote" in join["message"]) == (one == "hive_buckets")
        assert found["rewriting"]["shuffles"] == [shuffles, shuffles]
        assert found["rewriting"]["scans"] == [2, 2]


def test_hives_hints_and_size_setting_make_map_joins_with_the_same_rows(spark, tables):
    sql = "SELECT{} l.k, r.v FROM plain l JOIN right_buckets r ON l.k = r.k"
    rows = sorted(spark.sql(sql.format("")).collect())
    for hint, shuffles in ((" /*+ STREAMTABLE(l) */", 1), (" /*+ MAPJOIN(r) */", 0)):
        frame = spark.sql(sql.format(hint))
        assert shuffles_and_scans(frame) == (shuffles, 2)
        assert sorted(frame.collect()) == rows
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "1")
    try:
        for size, shuffles in ((10_000_000, 1), (20_000_000, 0)):
            settings = Settings.of({"hive.auto.convert.join.noconditionaltask.size": size})
            text = broadcasting(spark, SparkCatalog(spark), sql.format(""), settings)
            assert shuffles_and_scans(spark.sql(text)) == (shuffles, 2)
            assert sorted(spark.sql(text).collect()) == rows
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")


@pytest.mark.parametrize("adaptive", [True, False])
def test_aggregates_that_spark_computes_once_are_not_rewritten(spark, tables, adaptive):
    sql = (
        "SELECT o.k, sum(a.v) AS total FROM left_buckets o JOIN plain a ON a.k = o.k "
        "WHERE o.k IN (SELECT k FROM plain GROUP BY k HAVING sum(v) > 100) GROUP BY o.k"
    )
    conf = {
        "spark.sql.adaptive.enabled": str(adaptive).lower(),
        "spark.sql.autoBroadcastJoinThreshold": "10MB",
    }
    with conf_set(spark, conf):
        found = correlate(spark, Sized(spark), sql, Settings.for_run())
        asked = correlate(spark, Sized(spark), sql, ON)
    refused = (("aggregate_once", Refusal.NOT_EXPECTED_TO_WIN),)
    assert (found.applied, found.refused) == (
        (("aggregate_once",), ()) if adaptive else ((), refused)
    )
    assert asked.applied == ("aggregate_once",)
    assert sorted(spark.sql(asked.sql).collect()) == sorted(spark.sql(sql).collect())


def test_repeated_rows_of_a_joined_table_do_not_change_the_windows(spark, tables):
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW repeated AS SELECT * FROM VALUES (1, 'x'), (1, 'x'), "
        "(2, 'y'), (3, 'x'), (CAST(NULL AS int), 'x') AS d(k, name)"
    )
    sql = (
        "SELECT d.name, a.k, a.v FROM repeated d JOIN plain a ON a.k = d.k WHERE d.name = 'x' AND "
        "EXISTS (SELECT 1 FROM plain b WHERE b.k = d.k AND b.v > a.v) AND "
        "a.v > (SELECT min(v) FROM plain c WHERE c.k = a.k)"
    )

    found = correlate(spark, Sized(spark), sql, Settings.for_run())
    assert found.applied == ("self_join_window",)
    assert found.sql.count("FROM plain") == found.sql.count("repeated") == 1
    rows = sorted(spark.sql(sql).collect())
    assert len(rows) == 2 * 4 + 4
    assert sorted(spark.sql(found.sql).collect()) == rows
    spark.catalog.dropTempView("repeated")


def test_a_run_rewrites_the_statement_only_if_the_setting_is_on(spark, tables, tmp_path):
    sql = SQL.format("plain")
    path = UPath(tmp_path) / "1.json"
    rows = sorted(map(tuple, spark.sql(sql).collect()))
    assert Job(sql).settings.values["hive.optimize.correlation"] == "auto"
    for settings, rewritten in ((ON, True), (Settings.of(), False)):
        job = job_of(sql, settings=settings, show_rows=100)
        result = join(spark, job, prune(spark, job, path), path)
        assert sorted(result.rows) == rows
        assert (result.report.descriptor.statement is not None) == rewritten
        assert ("OVER (PARTITION BY" in result.statement) == rewritten


@pytest.mark.parametrize(
    ("shown", "condition"),
    [
        ("b.k", "AND current_user = 'bob'"),
        ("b.k, current_user AS who", ""),
        ("b.k, named_struct('f', 1, 'g', 2) AS info, info.f AS x", ""),
        ("b.k, 'MM' AS fmt, trunc(day, fmt) AS first", ""),
        ("b.k, b.V", "AND EXISTS (SELECT * FROM left_buckets l WHERE l.k = b.k)"),
        ("*", ""),
    ],
)
def test_a_shared_scan_has_every_column_that_a_name_may_refer_to(spark, tables, shown, condition):
    sql = (
        f"SELECT {shown} FROM (SELECT k, count(DISTINCT v) AS n FROM odd_names GROUP BY k) a, "
        "(SELECT k, count(DISTINCT day) AS n FROM odd_names GROUP BY k) c, odd_names b "
        f"WHERE a.k = b.k AND c.k = b.k {condition}"
    )
    found = correlate(spark, Sized(spark), sql, Settings.for_run())
    rows = sorted(map(repr, spark.sql(sql).collect()))
    if shown == "*":
        assert ("shared_scan", Refusal.NOT_EXPECTED_TO_WIN) in found.refused
    else:
        assert found.applied == ("shared_scan",)
        assert sorted(map(repr, spark.sql(found.sql).collect())) == rows
    assert rows


def test_no_directory_is_listed_to_find_a_rewriting(spark, tables):
    frame = spark.sql(
        "SELECT CAST(id AS int) AS v, CAST(id % 3 AS int) AS k, id % 5 AS p FROM range(30)"
    )
    frame.write.mode("overwrite").partitionBy("p").saveAsTable("plain_by_day")
    sql = (
        "SELECT o.k, sum(a.v) AS total FROM left_buckets o JOIN plain_by_day a ON a.k = o.k "
        "WHERE o.k IN (SELECT k FROM plain_by_day GROUP BY k HAVING sum(v) > 100) GROUP BY o.k"
    )
    listed = spark._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics.METRIC_FILES_DISCOVERED()
    for adaptive in ("true", "false"):
        spark.sql("REFRESH TABLE plain_by_day")
        before = listed.getCount()
        with conf_set(spark, {"spark.sql.adaptive.enabled": adaptive}):
            assert correlate(spark, Sized(spark), sql, Settings.for_run()).applied
        assert listed.getCount() == before


def test_a_broadcast_hint_is_not_added_where_spark_rejects_it(spark, tables):
    sql = "SELECT TRANSFORM(r.v) USING 'cat' AS v FROM plain l JOIN right_buckets r ON l.k = r.k"
    settings = Settings.of({"hive.auto.convert.join.noconditionaltask.size": 20_000_000})
    with conf_set(spark, {"spark.sql.autoBroadcastJoinThreshold": "1"}):
        assert broadcasting(spark, SparkCatalog(spark), sql, settings) == sql
        plain = sql.replace("TRANSFORM(r.v) USING 'cat' AS v", "r.v")
        assert "BROADCAST" in broadcasting(spark, SparkCatalog(spark), plain, settings)
