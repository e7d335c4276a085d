"""One Spark session for all tests of this folder, with Iceberg catalogs of four types."""

from __future__ import annotations

import pytest

from tests.lakes.jars import jars_of
from tests.lakes.session import lake_session
from tests.services.java_options import SHORT_LIVED

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"
JDBC_DATABASE = "iceberg_jdbc"


@pytest.fixture(scope="session")
def runtime():
    """Iceberg's jars."""
    return jars_of("iceberg")


@pytest.fixture(scope="session")
def rest_service(runtime, postgres_server, tmp_path_factory):
    """Iceberg's REST catalog behind a server that demands a token, and that can fail."""
    from tests.services.guarded_rest import guarded
    from tests.services.iceberg_rest import iceberg_rest

    folder = tmp_path_factory.mktemp("rest")
    with iceberg_rest(folder, postgres_server) as rest, guarded(rest.uri) as guard:
        yield guard


@pytest.fixture(scope="session")
def lake(runtime, metastore_service, postgres_server, rest_service, tmp_path_factory):
    """A session. Its catalog ``lake`` keeps tables in a folder.

    Its catalog ``hms`` keeps Iceberg tables in the metastore, in which the session's own catalog is
    too. Those of ``db`` are in PostgreSQL, and those of ``rest`` in a REST catalog.
    """
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
    from tests.services.metastore import jdbc_driver

    folder = tmp_path_factory.mktemp("iceberg")
    postgres_server.create_database(JDBC_DATABASE)
    catalogs = {
        "lake": {"type": "hadoop", "warehouse": str(folder / "lake")},
        "hms": {"type": "hive", "uri": metastore_service.uri},
        "db": {
            "type": "jdbc",
            "uri": postgres_server.jdbc_url(JDBC_DATABASE),
            "jdbc.user": postgres_server.user,
            "jdbc.password": postgres_server.password,
            "jdbc.schema-version": "V1",  # with views
            "warehouse": str(folder / "db"),
        },
        "rest": rest_properties(rest_service),
    }
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        **metastore_service.spark_conf(),
        "spark.jars": runtime,
        "spark.driver.extraClassPath": str(jdbc_driver()),
        "spark.sql.extensions": EXTENSIONS,
        # the tests' metastore has no tables for locks
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
    }
    for name, properties in catalogs.items():
        conf[f"spark.sql.catalog.{name}"] = CATALOG
        conf |= {f"spark.sql.catalog.{name}.{key}": value for key, value in properties.items()}
    with lake_session("iceberg", conf, folder) as session:
        yield session


def rest_properties(service) -> dict[str, str]:
    """Spark's properties of a catalog at the service."""
    return {
        "type": "rest",
        "uri": service.uri,
        "credential": service.credential,
        "oauth2-server-uri": f"{service.uri}/v1/oauth/tokens",
    }
