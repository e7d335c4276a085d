"""AWS Glue as Spark's metastore: moto has what the local task asks, Derby what Spark reads.

Spark has no client for Glue here. Its settings say so, and its embedded metastore has the same
tables. Derby counts what Spark fetches, and its filters have no limit.
"""

from __future__ import annotations

import logging

import pytest
from upath import UPath

from airflow_hive_opt.pruning.scan_way import FILTER_ON_GLUE, Way
from airflow_hive_opt.restriction.list_condition import cheapest_way, list_condition
from airflow_hive_opt.restriction.restrict import restrict
from airflow_hive_opt.spark.catalog.remote_metastore import PartitionsOf, remote_of
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.session.glue import glue_settings, is_on_glue
from tests.services.glue_stand_in import REGION, glue_stand_in
from tests.spark.stages import job_of, join, map_join, prune
from tests.spark.test_partition_cost import hadoop_settings

pytest.importorskip("moto")  # environments of other versions do not have it

DAYS = [f"day-{number:03}" for number in range(300)]
FACTORY = "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
SQL = "SELECT f.id, k.n FROM lake.fact f JOIN lake.keys k ON f.day = k.day AND k.n {}"


@pytest.fixture(scope="module")
def glue(spark):
    spark.sql("CREATE DATABASE lake")
    rows = spark.range(300).selectExpr("CAST(id AS INT) id", "format_string('day-%03d', id) day")
    rows.coalesce(1).write.partitionBy("day").saveAsTable("lake.fact")
    rows.selectExpr("id AS n", "day").coalesce(1).write.saveAsTable("lake.keys")
    spark.sql(
        "CREATE TABLE lake.projected (id INT) PARTITIONED BY (day STRING) STORED AS PARQUET "
        "TBLPROPERTIES ('projection.enabled' = 'true')"
    )
    with glue_stand_in() as stand_in:
        place = SparkCatalog(spark).location("lake.fact")
        values = [(day,) for day in DAYS]
        stand_in.create_table("lake.fact", [("day", "string")], values, location=place)
        yield stand_in
    spark.sql("DROP DATABASE lake CASCADE")


@pytest.fixture(autouse=True)
def on_glue(spark, glue, monkeypatch):
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "x")
    glue.forget()
    settings = {
        "hive.metastore.client.factory.class": FACTORY,
        "hive.metastore.uris": "thrift://emr-has-one:9083",
        "aws.region": REGION,
        "aws.glue.endpoint": glue.endpoint,
    }
    with hadoop_settings(spark, **settings):
        yield


def run(spark, tmp_path, condition):
    """The report and the rows, which are those of the plain statement."""
    job, path = job_of(SQL.format(condition), show_rows=1_000), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path, hand_over=False)
    result = join(spark, job, pruned, path)
    assert sorted(result.rows) == sorted(map(tuple, spark.sql(job.sql).collect()))
    return result.report


def test_glue_is_recognized_by_sparks_settings(spark, glue):
    assert is_on_glue(spark)
    assert remote_of(spark) is None
    found = glue_settings(spark)
    assert (found.region, found.endpoint, found.catalog_id) == (REGION, glue.endpoint, None)
    with hadoop_settings(spark, **{"hive.metastore.glue.catalogid": "210987654321"}):
        assert glue_settings(spark).catalog_id == "210987654321"
    with hadoop_settings(spark, **{"aws.catalog.credentials.provider.factory.class": "x.Own"}):
        assert glue_settings(spark) is None
        assert is_on_glue(spark)
    with hadoop_settings(spark, **{"hive.metastore.client.factory.class": "x.SessionFactory"}):
        assert not is_on_glue(spark)


def test_few_keys_on_glue_are_one_filter(spark, glue, tmp_path):
    report = run(spark, tmp_path, "< 10")
    (target,) = report.descriptor.targets
    assert (target.kept, target.total) == (10, 300)
    assert glue.calls == {"GetTable": 1, "GetPartitions": 1}  # one page has them all
    assert list(report.ways.values()) == ["filter"]
    assert report.work["map join"].partitions_fetched == 10


def test_keys_too_many_for_a_filter_are_looked_up_by_range(spark, glue, tmp_path, caplog):
    caplog.set_level(logging.INFO, "airflow_hive_opt")
    report = run(spark, tmp_path, "BETWEEN 50 AND 289 AND k.n % 2 = 0")
    assert report.descriptor.kept == 120
    assert list(report.ways.values()) == ["range"]
    assert report.work["map join"].partitions_fetched == 239
    assert "by range: it fetches every partition between the smallest and" in caplog.text


def test_two_tasks_on_glue_read_the_partitions_of_the_keys(spark, glue, tmp_path):
    job, path = job_of(SQL.format("< 200"), show_rows=1_000), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    assert pruned.descriptor.targets[0].filter is None  # it would be too long
    result = map_join(spark, job, path, pruned.descriptor.digest)
    assert len(result.rows) == 200


def test_partitions_of_a_large_glue_table_are_not_counted(spark, glue, tmp_path, monkeypatch):
    """More than a page: the number in reports is the page's and one."""
    more = [(f"old-{number}",) for number in range(1_200)]
    glue.add_partitions("lake.fact", more)
    try:
        report = run(spark, tmp_path, "< 10")
        (target,) = report.descriptor.targets
        assert (target.kept, target.total) == (10, 1_001)
        assert glue.calls == {"GetTable": 1, "GetPartitions": 1, "BatchGetPartition": 1}
        assert report.work["local task"].partitions_fetched == 1_010
    finally:
        from moto.glue.models import glue_backends

        from tests.services.glue_stand_in import ACCOUNT

        partitions = glue_backends[ACCOUNT][REGION].get_table("lake", "fact").partitions
        for row in more:
            del partitions[str(list(row))]
        glue._answers.clear()


@pytest.mark.parametrize("fault", ["denied", "expired"])
def test_spark_fetches_partitions_if_glue_refuses(spark, glue, tmp_path, fault, caplog):
    glue.fault = lambda number, action: fault
    report = run(spark, tmp_path, "< 10")
    assert report.descriptor.kept == 10
    assert "each partition is fetched through Spark: AWS Glue in" in caplog.text


@pytest.mark.parametrize(("place", "type_"), [("s3://elsewhere/fact", "string"), (None, "date")])
def test_a_glue_table_that_differs_from_sparks_is_not_used(spark, glue, caplog, place, type_):
    glue.client().update_table(
        DatabaseName="lake",
        TableInput={
            "Name": "fact",
            "PartitionKeys": [{"Name": "day", "Type": type_}],
            "StorageDescriptor": {"Location": place or SparkCatalog(spark).location("lake.fact")},
        },
    )
    catalog = SparkCatalog(spark)
    with PartitionsOf(spark, catalog) as metastore:
        assert not metastore.names_are_cheap
        fact = catalog.table("lake.fact")
        assert metastore.partition_count(fact) == 300
    assert glue.calls == {"GetTable": 1}
    assert "other partition columns of lake.fact than Spark" in caplog.text


def test_a_table_with_partition_projection_is_read_whole(spark, tmp_path):
    sql = "SELECT f.id FROM lake.projected f JOIN lake.keys k ON f.day = k.day AND k.n < 10"
    report = prune(spark, job_of(sql), UPath(tmp_path) / "1.json", hand_over=False)
    assert report.descriptor.targets == ()
    assert [each.reason for each in report.descriptor.decisions] == ["PARTITIONS_NOT_IN_METASTORE"]


def test_the_way_of_lookup_keeps_glues_filter_short_enough(spark):
    """What Spark makes of a list that is sent as a filter."""
    columns = ["region", "day"]
    rows = [("north", day) for day in DAYS]
    length = 0
    for number in range(1, 100):
        if cheapest_way(columns, rows[:number], 10_000, on_glue=True) is Way.FILTER:
            length = number
    assert 20 < length < 60
    terms = (f'(region = "{region}" and day = "{day}")' for region, day in rows[:length])
    assert len(" or ".join(terms)) <= FILTER_ON_GLUE
    odd = [(None,), ("a",)]
    assert cheapest_way(["day"], odd, 10_000, on_glue=True) is Way.WHOLE
    assert "concat" in list_condition("f", ["day"], odd, Way.WHOLE)
    assert restrict("SELECT 1", (), {}) == "SELECT 1"
