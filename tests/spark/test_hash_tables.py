"""Small tables are read once, where one application runs both stages."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from upath import UPath

from airflow_hive_opt.spark import hash_tables as module
from airflow_hive_opt.spark.application import Request, join, prune
from airflow_hive_opt.spark.hash_tables import HashTables
from tests.spark.answers import ask, files_of


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS held")
    spark.sql("USE held")
    frame = spark.range(30).selectExpr("CAST(id AS INT) amount", "CAST(id % 10 AS INT) p")
    frame.coalesce(1).write.partitionBy("p").saveAsTable("fact")
    spark.sql(
        "CREATE TABLE dim USING parquet AS SELECT /*+ COALESCE(1) */ * FROM VALUES "
        "(1, 'one', DATE'2020-01-01', 1.50BD), (1, 'uno', DATE'0001-01-01', NULL), "
        "(2, 'two', NULL, -2.25BD), (3, 'it''s', DATE'2020-01-03', 3.00BD), "
        "(NULL, 'none', NULL, 0.00BD), (99, 'absent', NULL, 9.99BD) AS t(p, name, day, price)"
    )
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE held CASCADE")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM fact f JOIN dim d ON f.p = d.p WHERE d.price > 0",
        "SELECT f.amount, d.* FROM dim d JOIN fact f ON f.p = d.p AND d.name <> 'uno'",
        "SELECT count(*), sum(price) FROM fact f, dim WHERE f.p = dim.p AND dim.day IS NOT NULL",
        "SELECT d.name, f.amount FROM dim d LEFT JOIN fact f ON f.p = d.p WHERE d.price < 5",
        "SELECT amount FROM fact f WHERE EXISTS "
        "(SELECT 1 FROM dim d WHERE d.p = f.p AND price < 2)",
        "SELECT amount FROM fact WHERE p IN (SELECT dim.p FROM dim WHERE name > 'o')",
        "WITH f AS (SELECT * FROM fact) SELECT f.amount, d.day FROM f JOIN dim d USING (p)",
        "SELECT a.name, b.name, f.amount FROM fact f JOIN dim a ON f.p = a.p AND a.price > 0 "
        "JOIN dim b ON f.p = b.p AND b.price < 3",
    ],
)
def test_the_join_reads_no_file_of_the_small_table(spark, tmp_path, sql):
    answer = ask(spark, tmp_path, sql)
    assert 0 < answer.target.kept <= 3
    assert 0 < files_of(answer, "fact") <= 3
    assert files_of(answer, "dim") == 0


@pytest.mark.parametrize(
    "sql",
    [
        # rows of the preserved side that the ON condition does not choose are in the answer
        "SELECT d.name, f.amount FROM dim d LEFT JOIN fact f ON f.p = d.p AND d.price > 0",
        "SELECT f.amount, d.n FROM fact f JOIN (SELECT p, max(name) n FROM dim GROUP BY p) d "
        "ON f.p = d.p AND d.n > 'o'",
    ],
)
def test_a_small_table_that_the_join_needs_otherwise_is_read_again(spark, tmp_path, sql):
    answer = ask(spark, tmp_path, sql)
    assert 0 < answer.target.kept <= 3
    assert files_of(answer, "dim") > 0


def test_more_rows_than_are_held(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 4)
    sql = "SELECT f.amount, d.name FROM fact f JOIN dim d ON f.p = d.p AND d.price {}"
    assert files_of(ask(spark, tmp_path, sql.format("< 9")), "dim") == 0
    answer = ask(spark, tmp_path, sql.format("< 90"))
    assert answer.target.kept == 3
    assert files_of(answer, "dim") > 0


def test_columns_that_do_not_come_back_as_they_went(spark, tmp_path):
    spark.sql("CREATE TABLE timed USING parquet AS SELECT *, timestamp(day) AS at FROM dim")
    sql = "SELECT f.amount, {} FROM fact f JOIN timed d ON f.p = d.p AND d.price > 0"
    assert files_of(ask(spark, tmp_path, sql.format("name")), "timed") == 0
    assert files_of(ask(spark, tmp_path, sql.format("at")), "timed") > 0


def test_nothing_is_left_behind(spark, tmp_path):
    request = Request("SELECT amount FROM fact f JOIN dim d ON f.p = d.p AND d.price > :above")
    request = Request(request.sql, parameters={"above": 2})
    path = UPath(tmp_path) / "1.json"
    with HashTables(spark) as hash_tables:
        pruned = prune(spark, request, path, hash_tables)
        (held,) = hash_tables.held
        assert [row.asDict() for row in spark.table(held.view).collect()] != []
        result = join(spark, request, pruned, path, hash_tables)
    assert sorted(result.rows) == [(3,), (13,), (23,)]
    assert held.view not in result.statement
    assert not spark.catalog.tableExists(held.view)


def test_what_is_written_is_not_held(spark, tmp_path):
    spark.sql("CREATE TABLE target USING parquet AS SELECT p, name FROM dim")
    sql = "INSERT OVERWRITE target SELECT t.p, t.name FROM fact f JOIN target t ON f.p = t.p"
    with pytest.raises(AnalysisException, match="OVERWRITE"):
        spark.sql(sql)
    request, path = Request(sql), UPath(tmp_path) / "1.json"
    with HashTables(spark) as hash_tables:
        pruned = prune(spark, request, path, hash_tables)
        assert hash_tables.held == ()
        with pytest.raises(AnalysisException, match="OVERWRITE"):
            join(spark, request, pruned, path, hash_tables)
    assert spark.table("target").count() == 6
