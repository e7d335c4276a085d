"""Spark's Thrift server on a metastore, with a star whose big table has 1,824 partitions."""

from __future__ import annotations

import pytest

from tests.services.java_options import SHORT_LIVED

DAYS = 1824
DAY = "date_add(DATE'1998-01-01', CAST(id AS INT))"
STAR = (
    "CREATE TABLE date_dim STORED AS PARQUET AS SELECT CAST(id AS INT) d_date_sk, "
    f"{DAY} d_date, year({DAY}) d_year, month({DAY}) d_moy FROM range({DAYS})",
    "CREATE TABLE item STORED AS PARQUET AS SELECT CAST(id AS INT) i_item_sk, "
    "concat('c', id % 2) i_category FROM range(4)",
    "CREATE TABLE store STORED AS PARQUET AS SELECT 1 s_store_sk, 'TN' s_state",
    "CREATE TABLE store_sales (ss_item_sk INT, ss_store_sk INT, ss_quantity INT, "
    "ss_ext_sales_price DECIMAL(7,2)) PARTITIONED BY (ss_sold_date_sk INT) STORED AS PARQUET",
    "INSERT INTO store_sales SELECT CAST(id % 4 AS INT), 1, CAST(id % 7 AS INT), "
    f"CAST(id AS DECIMAL(7,2)), CAST(id % {DAYS} AS INT) FROM range(0, {4 * DAYS}, 1, 1)",
    "CREATE TABLE sales_by_category (i_category STRING, s_state STRING, sales BIGINT, "
    "quantity BIGINT, revenue DECIMAL(17,2)) STORED AS PARQUET",
    "CREATE DATABASE elsewhere",
)


@pytest.fixture(scope="session")
def metastore_proxy(metastore_service):
    """What the Thrift server takes for the metastore; it notes the calls."""
    from tests.faults.proxy import proxy

    with proxy(metastore_service.port) as running:
        yield running


@pytest.fixture(scope="session")
def star(metastore_service, metastore_proxy, tmp_path_factory, database):
    """The Thrift server, with the tables of the example DAG in its default database."""
    pytest.importorskip("pyhive", reason="make test-thrift-server has it")
    from airflow.providers.apache.hive.hooks.hive import HiveServer2Hook

    from tests.services.thrift_server import thrift_server

    conf = {
        **metastore_service.spark_conf(),
        "spark.hadoop.hive.metastore.uris": metastore_proxy.uri,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    with (
        thrift_server(tmp_path_factory.mktemp("thrift_server"), conf) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AIRFLOW_CONN_SPARK_THRIFT_SERVER", running.connection())
        patch.setenv("AIRFLOW_CONN_ELSEWHERE", running.connection("elsewhere"))
        patch.setenv("AIRFLOW_CONN_METASTORE_DEFAULT", metastore_service.connection)
        HiveServer2Hook("spark_thrift_server").run(STAR)
        yield running
