"""One Spark session for all tests of this folder, whose own catalog is Hudi's."""

from __future__ import annotations

import pytest

from tests.lakes.jars import jars_of
from tests.services.java_options import SHORT_LIVED

SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


@pytest.fixture(scope="session")
def runtime():
    """Hudi's bundle."""
    return jars_of("hudi")


@pytest.fixture(scope="session")
def lake(runtime, metastore_service, tmp_path_factory):
    """A session whose tables are in a metastore."""
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
    from airflow_hive_opt.spark.session.session import spark_session

    folder = tmp_path_factory.mktemp("hudi")
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        **metastore_service.spark_conf(),
        **SETTINGS,
        "spark.jars": runtime,
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    with spark_session("hudi", conf) as session:
        session.sparkContext.setLogLevel("OFF")
        for kind in ("insert", "upsert", "delete", "bulkinsert"):  # tiny tables
            session.conf.set(f"hoodie.{kind}.shuffle.parallelism", "1")
        yield session
