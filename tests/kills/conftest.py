"""The servers of the suite, and its table of results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.tables import DATABASE, Tables
from tests.kills.make_tables import TEMPLATE, VERBS, plain_table
from tests.kills.matrix import AT_ONCE
from tests.services.processes import HOST, free_port
from tests.services.thrift import create_database, thrift_client

PROJECT = Path(__file__).parents[2]
RESULTS = pytest.StashKey()
# A dead worker or triggerer is noticed in seconds, not in minutes.
SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",  # they do not change
}


@pytest.fixture(scope="session")
def results(pytestconfig):
    """The results of all rounds, which are printed at the end."""
    return pytestconfig.stash.setdefault(RESULTS, [])


def pytest_terminal_summary(terminalreporter, config):
    if found := config.stash.get(RESULTS, None):
        from tests.kills.rounds import table_of

        terminalreporter.section("kills")
        for line in table_of(found):
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def tables(metastore_service, tmp_path_factory):
    """Tables that are made and read past Spark, and what plain Spark leaves in them, by verb."""
    from tests.e2e.conftest import session_conf

    folder = tmp_path_factory.mktemp("tables")
    with thrift_client(metastore_service) as client:
        create_database(client, DATABASE, f"file:{folder}/{DATABASE}")
        conf = {"spark.master": "local[2]", **session_conf(metastore_service)}
        command = [sys.executable, "-m", "tests.kills.make_tables"]
        subprocess.run(
            [*command, *(f"{name}={value}" for name, value in conf.items())],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            check=True,
        )
        yield Tables(client, f"file:{folder}/copies"), folder / "copies"


@pytest.fixture(scope="session")
def plain(tables):
    """What the table has before, and what plain Spark leaves, by verb."""
    found = {verb: tables[0].state(plain_table(verb)) for verb in VERBS}
    return tables[0].state(TEMPLATE), found


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A standalone cluster: a master and two workers of one core."""
    from tests.services.standalone import standalone

    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def server(tmp_path_factory, metastore_service):
    """A Spark Connect server on the metastore."""
    from tests.kills.connect_task import Server
    from tests.services.spark_connect import spark_connect

    page = free_port()
    own = {
        **metastore_service.spark_conf(),
        "spark.master": f"local[{2 * AT_ONCE}]",  # the statements sleep
        "spark.ui.enabled": "true",
        "spark.ui.port": str(page),
        "spark.driver.memory": "1g",
    }
    with spark_connect(tmp_path_factory.mktemp("connect"), own) as running:
        yield Server(running, page)


@pytest.fixture(scope="session")
def airflow(tmp_path_factory, postgres_server, metastore_service, cluster, server):
    """Airflow's services with this suite's DAGs."""
    from tests.kills.connect_task import user_of
    from tests.services.airflow import airflow, wait_for

    at = {"conn_type": "spark_connect", "host": HOST, "port": server.connect.port}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        for place in range(AT_ONCE):
            own = json.dumps({**at, "login": user_of(place)})
            patch.setenv(f"AIRFLOW_CONN_SPARK_CONNECT_SERVER_{place}", own)
        dags = (Path(__file__).parent / "dags",)
        folder = tmp_path_factory.mktemp("airflow")
        with airflow(folder, dags, postgres_server, metastore_service, cluster) as running:
            every = "/api/v2/dags?dag_id_pattern=killed"
            for place in range(AT_ONCE):
                pool = {"name": user_of(place), "slots": 4, "include_deferred": False}
                running.ask("/api/v2/pools", pool)
            wait_for(lambda: len(running.ask(every)["dags"]) == 1 + 2 * AT_ONCE or None)
            yield running
