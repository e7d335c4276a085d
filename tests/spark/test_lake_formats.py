"""Delta and Hudi tables, as Spark's catalog describes them; the runtimes are not installed."""

from __future__ import annotations

import pytest

from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.services.lake_entries import add_entry


@pytest.fixture(scope="module")
def entries(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS lake_formats")
    spark.catalog.setCurrentDatabase("lake_formats")
    spark.sql("CREATE TABLE twin (id INT, v INT, day DATE) USING parquet PARTITIONED BY (day)")
    for provider in ("delta", "Hudi"):
        add_entry(spark, "lake_formats.twin", f"lake_formats.of_{provider}", provider)
    yield spark
    spark.sql("DROP DATABASE lake_formats CASCADE")
    spark.catalog.setCurrentDatabase("default")


@pytest.mark.parametrize("name", ["of_delta", "of_hudi"])
def test_the_metastores_partitions_are_not_those_of_the_table(entries, name):
    """The entry says that the metastore has them. The format's own list may have more."""
    external = entries._jsparkSession.sharedState().externalCatalog()
    assert external.getTable("lake_formats", name).tracksPartitionsInCatalog()
    assert not SparkCatalog(entries).table(f"lake_formats.{name}").partitions_in_metastore
