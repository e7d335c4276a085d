"""Which errors of Spark's a retry can't mend."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.map_join.prelaunch import accepts
from airflow_hive_opt.spark.session.statement_errors import is_refusal


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS refused")
    spark.sql("CREATE TABLE refused.t (x INT) PARTITIONED BY (ds STRING) STORED AS PARQUET")
    spark.sql("INSERT INTO refused.t VALUES (1, '1')")
    yield
    spark.sql("DROP DATABASE refused CASCADE")


@pytest.mark.parametrize(
    ("sql", "refused"),
    [
        ("SELEC 1", True),
        ("SELECT nope FROM refused.t", True),
        ("SELECT * FROM refused.missing", True),
        ("SELECT nofunction(x) FROM refused.t", True),
        ("INSERT INTO refused.t SELECT 'a', 'b'", True),
        ("INSERT OVERWRITE refused.t PARTITION (ds = '1') SELECT x FROM refused.t", True),
        ("CREATE TABLE refused.t (y INT)", True),
        ("SET spark.sql.shuffle.partitions=x", True),
        ("SET spark.sql.warehouse.dir=x", True),
        # of the data, which may change
        ("SELECT CAST('x' AS INT)", False),
        ("SELECT raise_error('no')", False),
        ("SELECT 1 / 0", False),
        ("SELECT * FROM parquet.`/no/such/place`", False),
        # the metastore's client fails, and Spark says AnalysisException
        ("INSERT INTO refused.t VALUES (1, '1 ')", False),
    ],
)
def test_errors_of_spark_that_a_retry_can_not_mend_are_refusals(spark, sql, refused):
    with pytest.raises((PySparkException, Py4JJavaError)) as failed:
        spark.sql(sql).collect()
    assert is_refusal(failed.value) is refused


@pytest.mark.parametrize(
    ("sql", "accepted"),
    [("SELECT x FROM refused.t", True), ("SELECT nope FROM refused.t", False), ("SELEC", False)],
)
def test_statements_that_spark_accepts_are_recognized(spark, sql, accepted):
    assert accepts(spark, sql, {}) is accepted
