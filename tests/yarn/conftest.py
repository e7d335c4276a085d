"""A YARN cluster, and Spark on the metastore that its applications use."""

from __future__ import annotations

import json

import pytest

from tests.services.submit_variables import put_back
from tests.spark.on_metastore import spark_on
from tests.spark.test_bound_names import drop_database


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A cluster for all tests that leave it whole."""
    from tests.services.yarn import yarn

    with yarn(tmp_path_factory.mktemp("yarn")) as running:
        yield running


@pytest.fixture(scope="module")
def session(spark, metastore_service):
    """This process's Spark on the metastore, with the database ``shop``."""
    with spark_on(spark, metastore_service) as session:
        session.sql(f"CREATE DATABASE shop LOCATION '{metastore_service.warehouse}/shop'")
        for sql in (
            "CREATE TABLE shop.sales (item INT) PARTITIONED BY (ds INT) STORED AS PARQUET",
            "INSERT INTO shop.sales SELECT CAST(id AS INT), CAST(id % 12 AS INT) FROM range(24)",
            "CREATE TABLE shop.days (week INT, ds INT) STORED AS PARQUET",
            "INSERT INTO shop.days SELECT CAST(id DIV 3 AS INT), CAST(id AS INT) FROM range(12)",
        ):
            session.sql(sql)
        yield session
        drop_database(session, "shop")


@pytest.fixture
def conf(cluster, metastore_service):
    """Spark's settings for applications on the cluster."""
    return {**metastore_service.spark_conf(), **cluster.spark_conf()}


@pytest.fixture
def result(session):
    """An empty table that is written."""
    session.sql("CREATE TABLE shop.result (item INT, ds INT) STORED AS PARQUET")
    yield "shop.result"
    session.sql("DROP TABLE shop.result")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """Puts back what a task sets."""
    put_back(monkeypatch)


@pytest.fixture
def connect(monkeypatch, metastore_service):
    """Gives the connection ``cluster`` to a cluster, with the deploy mode, and ``metastore``."""

    def connection(cluster, mode: str) -> None:
        document = {
            "conn_type": "spark",
            "host": "yarn",
            "extra": {
                "deploy-mode": mode,
                "queue": "daily",
                "yarn_resourcemanager_webapp_address": cluster.address,
            },
        }
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(document))
        monkeypatch.setenv("AIRFLOW_CONN_METASTORE", metastore_service.connection)
        monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
        monkeypatch.setenv("YARN_CONF_DIR", str(cluster.conf))

    return connection
