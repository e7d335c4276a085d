"""A submitted statement that an earlier attempt of its task may have run does not run again."""

from __future__ import annotations

import time

import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents import claims
from airflow_hive_opt.documents.job import Job, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.statement_errors import may_follow_commit

LATER = 3600.0  # seconds


@pytest.fixture
def table(spark):
    """A table with one row, which was written just now."""
    spark.sql("CREATE DATABASE begun")
    spark.sql("CREATE TABLE begun.r (id INT, p STRING) USING parquet PARTITIONED BY (p)")
    spark.sql("INSERT INTO begun.r PARTITION (p = 'a') SELECT 1")
    yield "begun.r"
    spark.sql("DROP DATABASE begun CASCADE")


def run(spark, folder, sql, since):
    """Runs a retry whose attempt before may have written since then."""
    first, second = UPath(folder / "1.json"), UPath(folder / "2.json")
    claims.take(first, "old", "cause")
    if since is not None:
        claims._BEGUN.write(claims.Begun("old", "app-1", since), claims._begun_path(first))
    claims.take(second, "token", "cause")
    return run_job(spark, Job(sql, str(second), token="token"))


def rows(spark, table):
    return sorted(map(tuple, spark.table(table).collect()))


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO {table} SELECT 1, 'a'",
        "INSERT INTO {table} PARTITION (p = 'a') SELECT 1",
        "INSERT OVERWRITE {table} SELECT id + 1, p FROM {table}",
        "FROM {table} INSERT INTO {table} SELECT id, p",
    ],
)
def test_a_statement_whose_table_has_been_written_to_since_is_refused(spark, tmp_path, table, sql):
    outcome = run(spark, tmp_path, sql.format(table=table), time.time())
    assert outcome.status is Status.REFUSED
    assert "`r` has been written to since that statement began" in outcome.message
    assert "remove those that are there and clear the task" in outcome.message
    assert outcome.may_have_written  # one that reads it knows no more
    assert rows(spark, table) == [(1, "a")]


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("INSERT INTO {table} PARTITION (p = 'b') SELECT 2", [(1, "a"), (2, "b")]),
        ("INSERT OVERWRITE {table} PARTITION (p = 'a') SELECT 3", [(3, "a")]),
        ("SELECT count(*) FROM {table}", [(1, "a")]),
    ],
)
def test_one_that_repeats_no_rows_runs(spark, tmp_path, table, sql, after):
    outcome = run(spark, tmp_path, sql.format(table=table), time.time())
    assert outcome.status is Status.DONE, outcome.message
    assert rows(spark, table) == after


@pytest.mark.parametrize("since", [LATER, None])
def test_one_runs_whose_table_has_not_been_written_to(spark, tmp_path, table, since):
    since = since and time.time() + since
    outcome = run(spark, tmp_path, f"INSERT INTO {table} SELECT 2, 'a'", since)
    assert outcome.status is Status.DONE, outcome.message
    assert rows(spark, table) == [(1, "a"), (2, "a")]


def test_an_error_of_spark_came_before_the_commit(spark, tmp_path, table):
    sql = f"INSERT INTO {table} SELECT IF(id < 1, id, raise_error('no')), 'b' FROM range(2)"
    outcome = run(spark, tmp_path, sql, None)
    assert outcome.status is Status.FAILED
    assert not outcome.may_have_written


@pytest.mark.parametrize(
    ("java_class", "may"),
    [
        ("java.io.IOException", True),
        ("org.apache.hadoop.fs.FileAlreadyExistsException", True),
        ("org.apache.spark.SparkException", False),
    ],
)
def test_other_errors_may_have_come_after_it(spark, java_class, may):
    thrown = spark._jvm
    for part in java_class.split("."):
        thrown = getattr(thrown, part)
    assert may_follow_commit(Py4JJavaError("its words", thrown("its words"))) is may


@pytest.mark.parametrize(
    ("sql", "may"),
    [
        ("SELECT * FROM begun.no_table", False),
        ("CREATE TABLE begun.s USING parquet LOCATION 'no://where' AS SELECT 1", True),
    ],
)
def test_errors_as_pyspark_raises_them(spark, table, sql, may):
    with pytest.raises((PySparkException, Py4JJavaError)) as raised:
        spark.sql(sql)
    assert may_follow_commit(raised.value) is may


@pytest.mark.parametrize(
    ("error", "may"),
    [(Py4JNetworkError(), True), (ConnectionRefusedError(), True), (ValueError(), False)],
)
def test_the_end_of_the_jvm_tells_nothing(error, may):
    assert may_follow_commit(error) is may
