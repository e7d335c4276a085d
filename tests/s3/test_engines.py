"""Other engines read the partitions of a list from S3, whose names are spelt in several ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Job, Status
from airflow_hive_opt.engines import arrow, datafusion, duckdb, polars
from airflow_hive_opt.engines.locations import located
from airflow_hive_opt.engines.scan import PrunedScan, scan_of
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.spark.application.run import run_job
from tests.s3.test_reads import ODD, shown
from tests.services.s3_server import CREDENTIALS, REGION, Kind

DAYS = [*ODD, *(f"day-{number:03}" for number in range(10))]
SQL = "SELECT f.id, f.day FROM s3.sales f JOIN s3.sold d ON f.day = d.day WHERE d.n < {}"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE TABLE s3.sales (id BIGINT) PARTITIONED BY (day STRING) STORED AS PARQUET")
    days = spark.createDataFrame(list(enumerate(DAYS)), "n INT, day STRING")
    days.coalesce(1).write.saveAsTable("s3.sold", format="parquet")
    spark.sql("INSERT INTO s3.sales SELECT n, day FROM s3.sold")
    yield
    for name in ("sales", "sold"):
        spark.sql(f"DROP TABLE s3.{name}")


def by_arrow(scan: PrunedScan, endpoint: str) -> Any:
    return arrow.dataset(scan).to_table()


def by_duckdb(scan: PrunedScan, endpoint: str) -> Any:
    import duckdb as library
    import fsspec

    with library.connect() as connection:
        connection.register_filesystem(fsspec.filesystem("s3"))
        return duckdb.relation(connection, scan).to_arrow_table()


def by_polars(scan: PrunedScan, endpoint: str) -> Any:
    options = {**CREDENTIALS, "aws_endpoint_url": endpoint, "aws_region": REGION}
    frame = polars.lazy_frame(scan, storage_options={**options, "aws_allow_http": "true"})
    return frame.collect().to_arrow()


def by_datafusion(scan: PrunedScan, endpoint: str) -> Any:
    import datafusion as library

    context = library.SessionContext()
    datafusion.register(context, "sales", scan)
    return context.sql("SELECT * FROM sales").to_arrow_table()


@pytest.mark.parametrize("matching", [0, 1, 10, 15])
@pytest.mark.parametrize("reader", [by_arrow, by_duckdb, by_polars, by_datafusion])
def test_an_engine_opens_the_files_of_the_list_only(
    spark, store, metastore_service, reader: Callable[..., Any], matching
):
    sql = SQL.format(matching)
    outcome = run_job(spark.newSession(), Job(sql, "s3://lake/attempts/1.json", show_rows=100))
    assert outcome.status is Status.DONE, outcome.message
    with ThriftMetastore(metastore_service.uri) as metastore:
        scan = located(scan_of(load(UPath(outcome.summary["uri"])), "s3.sales"), metastore)
    store.forget()
    found = reader(scan, store.endpoint).to_pylist()
    assert shown((row["id"], row["day"]) for row in found) == shown(outcome.rows)
    assert len(found) == matching
    opened = {
        each.key for each in store.log if each.kind is Kind.GET and each.key.endswith(".parquet")
    }
    assert len(opened) == max(matching, 1)  # one, which tells the columns
