"""An S3 server, a metastore and a Spark that both have S3A, and a database in a bucket."""

from __future__ import annotations

import pytest

from tests.conftest import _SCRATCH
from tests.services.jars import jars
from tests.services.metastore import metastore
from tests.services.s3_server import CREDENTIALS, JARS, REGION, s3_server, spark_conf
from tests.services.spark_settings import LONG_LIVED

# S3A's own patience takes minutes for each fault.
QUICK = {
    # With its class, Spark takes the magic committer for all buckets, unless it is told not to.
    "spark.hadoop.fs.s3a.committer.magic.enabled": "false",
    "spark.hadoop.fs.s3a.bucket.lake.committer.magic.enabled": "true",
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "10ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "2",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "10ms",
}


@pytest.fixture(scope="session")
def running_store():
    with s3_server() as server:
        for bucket in ("lake", "elsewhere"):
            server.make_bucket(bucket)
        yield server


@pytest.fixture
def store(running_store, monkeypatch):
    """The server, which counts anew and does not fail; fsspec finds it in the environment."""
    running_store.forget()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", running_store.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name.upper(), value)
    yield running_store
    running_store.forget()


@pytest.fixture(scope="session")
def metastore_service(postgres_server, tmp_path_factory, running_store):
    """A metastore that makes and deletes folders on S3, like Spark."""
    folder = tmp_path_factory.mktemp("metastore")
    quick = {name.removeprefix("spark.hadoop."): value for name, value in QUICK.items()}
    settings = running_store.s3a() | quick
    with metastore(folder, postgres_server, beside=jars(JARS), settings=settings) as service:
        yield service


@pytest.fixture(scope="session")
def settings(metastore_service, running_store):
    """Spark's settings, of this process and of others."""
    return {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.hadoop.hive.metastore.uris": metastore_service.uri,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
        "spark.local.dir": str(_SCRATCH / "spark"),
        "spark.sql.warehouse.dir": "s3a://lake/warehouse",
        **LONG_LIVED,
        **spark_conf(running_store),
        **QUICK,
    }


@pytest.fixture(scope="session")
def spark_of_the_process(settings):
    from airflow_hive_opt.spark.session.session import spark_session

    with spark_session("tests", settings) as session:
        session.sparkContext.setLogLevel("OFF")
        session.sql("CREATE DATABASE s3 LOCATION 's3a://lake/warehouse/s3.db'")
        yield session
