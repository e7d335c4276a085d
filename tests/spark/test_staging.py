"""Jobs that write partitions of one table at once do not meet in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from upath import UPath

from airflow_hive_opt.spark.application import Request, join, prune
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.staging import SPARK_WRITES, own_staging


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS staged")
    spark.sql("CREATE TABLE staged.days STORED AS PARQUET AS SELECT 1 AS d, 10 AS amount")
    spark.sql("CREATE TABLE staged.sales (amount INT) PARTITIONED BY (d INT) STORED AS PARQUET")
    spark.sql("INSERT INTO staged.sales VALUES (5, 1), (6, 1), (7, 2)")
    spark.sql(
        "CREATE TABLE staged.result (amount BIGINT) PARTITIONED BY (ds STRING, n INT) "
        "STORED AS PARQUET"
    )
    yield
    spark.sql("DROP DATABASE staged CASCADE")


@pytest.fixture
def others(spark):
    """A folder of another job that is writing to the table."""
    location = spark.sql("DESCRIBE FORMATTED staged.result").where("col_name = 'Location'")
    folder = Path(location.collect()[0]["data_type"].removeprefix("file:"), "_temporary", "0", "t")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part-0").write_text("its rows")
    return folder


def run(spark, tmp_path, partition, values=""):
    request = Request(
        f"INSERT OVERWRITE TABLE staged.result PARTITION ({partition}) "
        f"SELECT sum(s.amount){values} FROM staged.sales s JOIN staged.days d ON s.d = d.d"
    )
    path = UPath(tmp_path) / "1.json"
    session = spark.newSession()
    report = join(session, request, prune(session, request, path), path).report
    assert report.descriptor.kept == 1
    spark.sql("REFRESH TABLE staged.result")
    return sorted(map(tuple, spark.table("staged.result").collect()))


@pytest.mark.parametrize(
    ("partition", "values"),
    [("ds = 'a', n = 1", ""), ("ds = 'a', n", ", 1"), ("ds, n", ", 'a', 1")],
)
def test_another_jobs_files_are_left_alone(spark, tmp_path, others, partition, values):
    assert run(spark, tmp_path, partition, values) == [(11, "a", 1)]
    assert run(spark, tmp_path, partition, values) == [(11, "a", 1)]  # overwritten, not added to
    assert (others / "part-0").read_text() == "its rows"


def test_who_sets_it_has_it(spark, tmp_path):
    session = spark.newSession()
    session.conf.set(SPARK_WRITES, "true")
    catalog = SparkCatalog(session)
    sql = "INSERT INTO staged.result PARTITION (ds = 'a', n = 1) SELECT 1"
    with own_staging(session, catalog, sql):
        assert session.conf.get(SPARK_WRITES) == "true"
    session.conf.unset(SPARK_WRITES)
    with own_staging(session, catalog, sql):
        assert session.conf.get(SPARK_WRITES) == "false"
    assert session.conf.get(SPARK_WRITES) == "true"


def test_ancient_days_are_read_as_they_were_written(spark, tmp_path):
    spark.sql("CREATE TABLE staged.past (day DATE) PARTITIONED BY (ds STRING) STORED AS PARQUET")
    request = Request("INSERT OVERWRITE staged.past PARTITION (ds = 'a') SELECT DATE'0001-01-01'")
    path = UPath(tmp_path) / "1.json"
    join(spark, request, prune(spark, request, path), path)
    ((day,),) = spark.sql("SELECT string(day) FROM staged.past").collect()
    assert day == "0001-01-01"
