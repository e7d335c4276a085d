"""Random correlated queries: the rewritten query returns the plain rows, names and types."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.rewriting import rewrite
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.statement.settings import Settings
from tests.fuzz.correlated import query, setup
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report

QUERIES = count_of("FUZZ_QUERIES", 40)
# A long run may be made in parts, with the same queries.
FIRST = count_of("FUZZ_FIRST", 0)
PER_DATABASE = 500
# Generated code takes longer to compile than these tables take to read; every eighth query has it.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
ON = Settings.of({"hive.optimize.correlation": "true"})


class Sized(SparkCatalog):
    """Spark's catalog with large ``t``, ``e`` and ``h``, so that the rewritings try key sets."""

    def table(self, name):
        found = super().table(name)
        return found and replace(found, total_bytes=10**9 if found.short_name in "teh" else 10**6)


@pytest.fixture(scope="module")
def database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS correlated")
    spark.sql("USE correlated")
    yield
    for name in QUICK:
        spark.conf.unset(name)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.sql("USE default")
    spark.sql("DROP DATABASE correlated CASCADE")


def answer(spark, sql):
    """The rows with the columns' types first, or what Spark says against the statement."""
    try:
        frame = spark.sql(sql)
        return [frame.dtypes, *sorted(map(repr, frame.collect()))]
    except PySparkException as error:
        return str(error)


@pytest.mark.slow
def test_rewritten_random_queries_have_the_plain_rows(spark, database):
    applied, refused, wrong = Counter(), Counter(), []
    for number in range(FIRST, FIRST + QUERIES):
        if number in (FIRST, number - number % PER_DATABASE):
            setup(spark, SEED + number - number % PER_DATABASE)
            catalog = Sized(spark)
        for name, value in QUICK.items():
            if number % 8:
                spark.conf.set(name, value)
            else:
                spark.conf.unset(name)
        sql = query(SEED * 1_000_003 + number)
        settings = QUICK if number % 8 else {}
        with case(f"query {number}", settings=settings, statement=sql) as finding:
            rewriting = rewrite(sql, catalog, ON)
            applied.update(rewriting.applied or ["none"])
            refused.update(rewriting.refused)
            if not rewriting.applied:
                continue
            plain, ours = answer(spark, sql), answer(spark, rewriting.sql)
        if plain != ours or isinstance(plain, str):
            wrong.append(finding(rewritten=rewriting.sql, **differing(plain, ours)))
    counted = f"{QUERIES} queries, {repeat(FUZZ_FIRST=FIRST)}, {dict(applied)}"
    print(counted)
    for (name, reason), times in refused.most_common():
        print(f"  {name}: {reason} {times}")
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES, FUZZ_FIRST=FIRST)
    assert applied["none"] < QUERIES * 0.6, counted
    named = {"self_join_window", "aggregate_once", "merged_aggregates"}
    assert set(applied) >= named, counted
