"""Spark and the worker on one Hive Metastore."""

from __future__ import annotations

import pytest

from tests.spark.on_metastore import spark_on
from tests.spark.test_bound_names import drop_database
from tests.worker.tasks import Tasks


@pytest.fixture(scope="module")
def session(spark, metastore_service):
    """This process's Spark on the metastore, with an empty database ``worker_it``."""
    with spark_on(spark, metastore_service) as session:
        session.sql(f"CREATE DATABASE worker_it LOCATION '{metastore_service.warehouse}/it'")
        yield session
        drop_database(session, "worker_it")


@pytest.fixture
def tasks(session, metastore_service, tmp_path, monkeypatch):
    """Runs the operators, as tasks whose connection is to the metastore."""
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", metastore_service.connection)
    return Tasks(session, tmp_path)
