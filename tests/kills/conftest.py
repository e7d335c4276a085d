"""The servers of the suite, and its table of results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.tables import DATABASE, Tables
from tests.kills.make_tables import TEMPLATE, VERBS, plain_table
from tests.kills.matrix import rounds, tasks_at_once
from tests.services.java_options import SHORT_LIVED
from tests.services.processes import HOST, free_port, own_address
from tests.services.thrift import create_database, thrift_client

PROJECT = Path(__file__).parents[2]
AT_ONCE = tasks_at_once(os.environ)
RESULTS = pytest.StashKey()
# A dead worker or triggerer is noticed in seconds, not in minutes.
SETTINGS = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__TRIGGERER__QUEUES_ENABLED": "True",  # a triggerer for each task that runs at once
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "10",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
    "AIRFLOW__API_AUTH__JWT_EXPIRATION_TIME": str(7 * 24 * 3600),
    "AIRFLOW__CORE__PARALLELISM": str(4 * AT_ONCE),  # a task that was killed still counts
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",  # they do not change
}


# The tasks' processes are forked from the scheduler's, and this is most of a task's start. So no
# round ends a task while it imports PySpark. gRPC has no channel yet when the scheduler forks.
LOCAL_SETTINGS = """
import sys
if "scheduler" in sys.argv:
    import airflow.providers.apache.spark.operators.spark_submit
    import airflow_hive_opt.operators.map_join_prune
    import airflow_hive_opt.provider.connect_deferral
    import pyspark.sql.connect.session
"""


@pytest.fixture(scope="session")
def results(pytestconfig):
    """The results of all rounds, which are printed at the end."""
    if name := os.environ.get("RESULTS"):
        Path(name).touch()  # if it can't be written, that is told before the rounds
    return pytestconfig.stash.setdefault(RESULTS, [])


def pytest_terminal_summary(terminalreporter, config):
    if found := config.stash.get(RESULTS, None):
        from tests.kills.rounds import read_line, table_of

        if name := os.environ.get("RESULTS"):
            found = [read_line(line) for line in Path(name).read_text().splitlines()]
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
def clusters(tmp_path_factory):
    """A standalone cluster for each task that runs at once: a master, two workers of one core."""
    from tests.services.standalone import standalone

    needed = any(case.kind == "cluster" for case, _ in rounds(os.environ))
    with ExitStack() as stack:
        yield [
            stack.enter_context(standalone(tmp_path_factory.mktemp("cluster")))
            for _ in range(AT_ONCE if needed else 1)
        ]


@pytest.fixture(scope="session")
def servers(tmp_path_factory, metastore_service):
    """A Spark Connect server on the metastore for each task that runs at once."""
    from tests.kills.connect_task import Server
    from tests.services.spark_connect import spark_connect

    def own(page):
        return {
            **metastore_service.spark_conf(),
            "spark.ui.enabled": "true",
            "spark.ui.port": str(page),
            "spark.driver.memory": "1g",
        }

    needed = any(case.kind != "cluster" for case, _ in rounds(os.environ))
    host = own_address() or HOST  # by it a task knows whether a server was started again
    with ExitStack() as stack:
        found = []
        for _ in range(AT_ONCE if needed else 0):
            page, folder = free_port(), tmp_path_factory.mktemp("connect")
            running = stack.enter_context(spark_connect(folder, own(page), host))
            found.append(Server(running, page))
        yield found


@pytest.fixture(scope="session")
def airflow(tmp_path_factory, postgres_server, metastore_service, clusters, servers):
    """Airflow's services with this suite's DAGs."""
    from tests.kills.airflow_task import name_of
    from tests.services.airflow import airflow, wait_for

    for_dags = {"AT_ONCE": str(AT_ONCE), "JAVA_OPTIONS": SHORT_LIVED}
    own = {**SETTINGS, **for_dags}
    for number, server in enumerate(servers):
        at = {
            "conn_type": "spark_connect",
            "host": server.connect.host,
            "port": server.connect.port,
        }
        own[f"AIRFLOW_CONN_SPARK_CONNECT_SERVER_{number}"] = json.dumps(at)
    for number, cluster in enumerate(clusters):
        own[f"AIRFLOW_CONN_SPARK_DRIVERS_{number}"] = cluster.cluster_mode
    dags = (Path(__file__).parent / "dags",)
    folder = tmp_path_factory.mktemp("airflow")
    (config := folder / "airflow" / "config").mkdir(parents=True)
    (config / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
    names = [name_of(number) for number in range(AT_ONCE)]
    services = postgres_server, metastore_service, clusters[0]
    with airflow(folder, dags, *services, own, names) as running:
        every = "/api/v2/dags?dag_id_pattern=killed&limit=1"
        for name in names:
            pool = {"name": name, "slots": 4, "include_deferred": False}
            running.ask("/api/v2/pools", pool)
        wait_for(lambda: running.ask(every)["total_entries"] == 3 * AT_ONCE or None)
        yield running
