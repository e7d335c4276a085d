"""One Spark session with an Iceberg catalog ``lake`` for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.services.iceberg_runtime import iceberg_jars, is_installed
from tests.services.java_options import SHORT_LIVED

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"


@pytest.fixture(scope="session")
def lake(tmp_path_factory):
    """A session; its catalog ``lake`` keeps tables in a folder."""
    if not is_installed():
        pytest.skip("Iceberg's runtime is not installed: make test-iceberg")
    from airflow_hive_opt.spark.session.session import embedded_conf, spark_session

    folder = tmp_path_factory.mktemp("iceberg")
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        "spark.jars": iceberg_jars(folder),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.catalog.lake": CATALOG,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    with spark_session("iceberg", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session
