"""Entries of Delta and Hudi tables in a metastore, in a session without these formats' catalogs.

Such a table is not pruned. The metastore's partitions never count: the format's own list may have
more. ``tests/lakes`` has the tables themselves.
"""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from tests.services.lake_entries import add_entry
from tests.spark.stages import prune

FORMATS = ("delta", "hudi")


@pytest.fixture(scope="module")
def entries(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS lake_formats")
    spark.catalog.setCurrentDatabase("lake_formats")
    spark.sql("CREATE TABLE twin (id INT, v INT, day DATE) USING parquet PARTITIONED BY (day)")
    spark.sql("INSERT INTO twin VALUES (1, 1, DATE'2026-01-05'), (2, 2, DATE'2026-01-06')")
    for provider in FORMATS:
        add_entry(spark, "lake_formats.twin", f"lake_formats.of_{provider}", provider.title())
    spark.sql("CREATE TABLE changed AS SELECT DATE'2026-01-05' AS day")
    yield spark
    spark.sql("DROP DATABASE lake_formats CASCADE")
    spark.catalog.setCurrentDatabase("default")


@pytest.mark.parametrize("provider", FORMATS)
def test_a_lake_table_without_its_catalog_is_read_whole(entries, tmp_path, caplog, provider):
    external = entries._jsparkSession.sharedState().externalCatalog()
    assert external.getTable("lake_formats", f"of_{provider}").tracksPartitionsInCatalog()
    assert not SparkCatalog(entries).table(f"lake_formats.of_{provider}").partitions_in_metastore
    sql = f"SELECT o.id FROM of_{provider} o JOIN changed c ON o.day = c.day"
    found = prune(entries, Job(sql), UPath(tmp_path) / "descriptor.json").descriptor
    assert (found.targets, found.row_filters) == ((), ())
    assert [each.reason for each in found.decisions] == ["PARTITIONS_NOT_IN_METASTORE"]
    assert "so it is not pruned: set it to" in caplog.text
