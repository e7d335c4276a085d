"""A Spark session for each table format, which dbt finds in this process."""

from __future__ import annotations

import pytest

from tests.dbt_package.project import Project
from tests.lakes.jars import jars_of

SETTINGS = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
    "iceberg": {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        # the tests' metastore has no tables for locks
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    },
}


@pytest.fixture(scope="module", params=SETTINGS)
def lake(request, metastore_service, tmp_path_factory):
    """A session whose own catalog is the format's; both have the jars of both, like their JVM."""
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
    from airflow_hive_opt.spark.session.session import spark_session

    folder = tmp_path_factory.mktemp(request.param)
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        **metastore_service.spark_conf(),
        **SETTINGS[request.param],
        "spark.jars": ",".join(jars_of(name) for name in SETTINGS),
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.sql.catalog.spark_catalog.uri": metastore_service.uri,
    }
    with spark_session("dbt", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        session.sql("CREATE DATABASE dw")
        yield session
        session.sql("DROP DATABASE dw CASCADE")


@pytest.fixture
def project(lake, request, tmp_path):
    """A dbt project with the package."""
    return Project(tmp_path, lake, request.node.callspec.params["lake"])
