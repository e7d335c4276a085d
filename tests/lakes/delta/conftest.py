"""One Spark session for all tests of this folder, whose own catalog is Delta's."""

from __future__ import annotations

import pytest

from tests.lakes.jars import jars_of
from tests.lakes.session import lake_session
from tests.services.java_options import SHORT_LIVED

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


@pytest.fixture(scope="session")
def runtime():
    """Delta's jars."""
    return jars_of("delta")


@pytest.fixture(scope="session")
def lake(runtime, metastore_service, tmp_path_factory):
    """A session whose tables are in a metastore."""
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf

    folder = tmp_path_factory.mktemp("delta")
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        **metastore_service.spark_conf(),
        "spark.jars": runtime,
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.spark_catalog": CATALOG,
        # tiny tables: Delta reads its log with a job of that many tasks
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "1",
        # tiny statements: compiling would be most of their time
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    with lake_session("delta", conf, folder) as session:
        yield session
