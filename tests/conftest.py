"""Fixtures of all tests: an Airflow home for the tests, and one Spark session with Hive support."""

from __future__ import annotations

import gc
import json
import logging
import os
import tempfile
from pathlib import Path

import pytest

_SCRATCH = Path(tempfile.mkdtemp(prefix="airflow-hive-opt-tests-"))
# Before anything imports Airflow, which reads its home once.
os.environ["AIRFLOW_HOME"] = str(_SCRATCH / "airflow")
(_SCRATCH / "airflow").mkdir()
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = str(Path(__file__).parents[1] / "dags")
os.environ["AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS"] = "False"
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "False"


METASTORE_VERSION = os.environ.get("METASTORE_VERSION") or None
"""The set of jars of the metastore, such as hive-4.0; the default are PySpark's, with Hive 2.3."""

SERVERS = {"spark", "postgres_server", "metastore_service", "connect_server", "database", "web"}


def pytest_collection_modifyitems(items):
    """Marks the tests that need a server, so that ``make check`` can leave them out.

    The files with such tests come first: the processes then end at nearly the same time.
    """
    for item in items:
        if SERVERS.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("server")
    files = {item.path for item in items if item.get_closest_marker("server")}
    items.sort(key=lambda item: item.path not in files)


def pytest_collection_finish():
    """What has been imported until now stays: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files that need the same server run in the same process, which alone starts it."""
    from tests.services.started_once import ByServer

    return ByServer(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def spark_of_the_process(request):
    """The first session of a Spark with Hive support, on a fresh embedded warehouse.

    With another version of the metastore's client than PySpark's, it is on that metastore.
    """
    from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
    from airflow_hive_opt.spark.session.session import spark_session
    from tests.services.metastore import client_conf
    from tests.services.spark_settings import LONG_LIVED, in_memory_metastore

    conf = {
        **embedded_conf(_SCRATCH / "warehouse", "local[2]"),
        **in_memory_metastore("tests"),
        **LONG_LIVED,
        # Bytes that are read in parallel are missing from Spark's own count of them.
        "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
    }
    if client := client_conf(METASTORE_VERSION):
        conf |= client | request.getfixturevalue("metastore_service").spark_conf()
    with spark_session("tests", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session


@pytest.fixture(scope="module")
def spark(spark_of_the_process):
    """A session without views, settings or functions of other files; the metastore is shared."""
    return spark_of_the_process.newSession()


# Tests compare this package's lines, among which Spark's would be.
LEVELS = {"airflow_hive_opt": logging.NOTSET, "spark": logging.CRITICAL}


@pytest.fixture(autouse=True)
def log_levels():
    """A test that runs the command line, which sets levels, does not change them for others.

    A fixture of a module may have run it too, so what is there before a test says nothing.
    """
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)
    yield
    for name, level in LEVELS.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server, in which tests create their own databases."""
    from tests.services.postgres import postgres

    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def metastore_service(postgres_server, tmp_path_factory):
    """A Hive Metastore on PostgreSQL, in which tests create their own Hive databases."""
    from tests.services.metastore import metastore

    folder = tmp_path_factory.mktemp("metastore")
    with metastore(folder, postgres_server, version=METASTORE_VERSION) as service:
        yield service


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory):
    """A Spark Connect server with its own warehouse, in which tests create databases."""
    from packaging.version import Version

    from tests.services.spark_connect import spark_connect
    from tests.versions.installed import SPARK

    if Version("4.0") > SPARK:
        pytest.skip("Spark Connect needs PySpark 4.0")
    if Version("4.2") > SPARK:
        gc.disable()  # a closed session that is collected while another one asks blocks both

    try:
        with spark_connect(tmp_path_factory.mktemp("connect")) as running:
            yield running
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def database():
    """A migrated Airflow database in this test run's own home."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="session")
def web(database):
    """The API server's application with the plugin in it, and a user's token."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    with TestClient(create_app(apps="core")) as client:
        home = Path(os.environ["AIRFLOW_HOME"])
        passwords = home / "simple_auth_manager_passwords.json.generated"
        login = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
        token = client.post("/auth/token", json=login).json()["access_token"]
        yield client, {"Authorization": f"Bearer {token}"}
