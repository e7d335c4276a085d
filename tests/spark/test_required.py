"""Which partitions are required if several small tables prune one table."""

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.application.request import Request
from airflow_hive_opt.spark.application.required_partitions import required_partitions
from airflow_hive_opt.statement.errors import PlanError

SQL = (
    "SELECT f.id FROM needed.fact f JOIN needed.days d ON f.ds = d.ds "
    "JOIN needed.regions r ON f.region = r.code"
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE needed")
    spark.sql(
        "CREATE TABLE needed.fact (id INT) USING parquet PARTITIONED BY (ds STRING, region STRING)"
    )
    spark.sql("CREATE TABLE needed.days AS SELECT * FROM VALUES ('d1'), ('d2') AS t(ds)")
    spark.sql("CREATE TABLE needed.regions AS SELECT * FROM VALUES ('n'), ('s') AS t(code)")
    yield
    spark.sql("DROP DATABASE needed CASCADE")


def test_every_combination_is_called_for(spark):
    (found,) = required_partitions(spark, Request(SQL))
    assert found.columns == ("ds", "region")
    assert found.tuples == (("d1", "n"), ("d1", "s"), ("d2", "n"), ("d2", "s"))


def test_or_the_keys_of_the_chosen_columns_alone(spark):
    (found,) = required_partitions(spark, Request(SQL), ["DS"])
    assert (found.columns, found.tuples) == (("ds",), (("d1",), ("d2",)))
    assert found.all_columns == ("ds", "region")
    with pytest.raises(
        PlanError,
        match="month are not .* prune ds, region",
    ):
        required_partitions(spark, Request(SQL), ["month"])


def test_keys_that_cant_be_read_are_no_reason_to_go_on(spark):
    """A sensor that waited for nothing would let the join run early."""
    sql = SQL.replace("needed.days d", "(SELECT raise_error('no') AS ds FROM needed.days) d")
    with pytest.raises(PySparkException, match="no"):
        required_partitions(spark, Request(sql))


def test_each_reader_of_a_cte_requires_its_own_partitions(spark):
    sql = (
        "WITH t AS (SELECT f.id, d.ds AS day FROM needed.fact f JOIN needed.days d ON f.ds = d.ds) "
        "SELECT id FROM t WHERE day = 'd1' UNION ALL SELECT id FROM t WHERE day = 'd2'"
    )
    found = required_partitions(spark, Request(sql))
    assert [entry.tuples for entry in found] == [(("d1",),), (("d2",),)]
