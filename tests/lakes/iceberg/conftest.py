"""One Spark session for all tests of this folder, with two Iceberg catalogs and a metastore."""

from __future__ import annotations

import pytest

from tests.lakes.jars import jars_of
from tests.services.java_options import SHORT_LIVED

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"


@pytest.fixture(scope="session")
def runtime():
    """Iceberg's jars."""
    return jars_of("iceberg")


@pytest.fixture(scope="session")
def lake(runtime, metastore_service, tmp_path_factory):
    """A session. Its catalog ``lake`` keeps tables in a folder.

    Its catalog ``hms`` keeps Iceberg tables in the metastore, in which the session's own catalog is
    too.
    """
    from airflow_hive_opt.spark.session.session import embedded_conf, spark_session

    folder = tmp_path_factory.mktemp("iceberg")
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        **metastore_service.spark_conf(),
        "spark.jars": runtime,
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalog.lake": CATALOG,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.sql.catalog.hms": CATALOG,
        "spark.sql.catalog.hms.type": "hive",
        "spark.sql.catalog.hms.uri": metastore_service.uri,
        # the tests' metastore has no tables for locks
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    with spark_session("iceberg", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session
