"""Spark and the worker on one Hive Metastore."""

from __future__ import annotations

import json
import re

import pytest

from tests.spark.on_metastore import spark_on
from tests.worker.tasks import Tasks


@pytest.fixture(scope="module")
def session(spark, metastore_service):
    """This process's Spark on the metastore, with an empty database ``worker_it``."""
    with spark_on(spark, metastore_service) as session:
        session.sql("DROP DATABASE IF EXISTS worker_it CASCADE")
        session.sql(f"CREATE DATABASE worker_it LOCATION '{metastore_service.warehouse}/it'")
        yield session
        session.sql("DROP DATABASE worker_it CASCADE")


@pytest.fixture
def tasks(session, metastore_service, tmp_path, monkeypatch):
    """Runs the operators, as tasks whose connection is to the metastore."""
    host, port = re.fullmatch(r"thrift://(.+):(\d+)", metastore_service.uri).groups()
    connection = {"conn_type": "hive_metastore", "host": host, "port": int(port)}
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", json.dumps(connection))
    return Tasks(session, tmp_path)
