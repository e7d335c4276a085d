"""The set of ``docker/compose.yaml`` without containers: its commands, on loopback.

Docker runs on few build machines. What it would start is started here in its order, with this
machine's ports and folders, and a DAG is run as its users run it.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from signal import SIGTERM
from types import SimpleNamespace

import pytest

from airflow_hive_opt.spark.java import ensure_java
from tests.services import compose
from tests.services.processes import HOST, free_port, server

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def airflow(tmp_path_factory, postgres_server, metastore_service, cluster):
    """Airflow's four services, the tables made; gives the API server's address."""
    ensure_java()
    folder = tmp_path_factory.mktemp("set")
    port = free_port()
    variables = {
        **postgres_server.variables(),
        **cluster.variables,
        "API_SERVER_HOST": HOST,
        "API_SERVER_PORT": port,
        "API_SERVER_PUBLIC": f"{HOST}:{port}",
        "DAGS_FOLDER": PROJECT / "dags",
        "DESCRIPTORS": folder / "descriptors",
        "HERE": compose.DOCKER,
        "METASTORE_HOST": metastore_service.host,
        "METASTORE_PORT": metastore_service.port,
    }
    environment = {
        **os.environ,
        **compose.environment("airflow-scheduler", **variables),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__API__HOST": HOST,
        "SPARK_CONF_DIR": str(spark_conf(folder / "conf", metastore_service)),
        "SPARK_LOCAL_IP": HOST,
    }
    postgres_server.create_database("airflow")

    def run(service):
        """A service that does its work and ends."""
        log = folder / f"{service}.log"
        with log.open("w") as file:
            command = compose.command(service, **variables)
            done = subprocess.run(command, stdout=file, stderr=file, env=environment, check=False)
        assert done.returncode == 0, log.read_text()[-2000:]

    def well(*parts):
        """The container's own health check, once a second."""
        time.sleep(1)
        command = [*compose.command("metastore", HERE=compose.DOCKER)[:1], "airflow", *parts]
        command.insert(1, str(compose.DOCKER / "healthy.py"))
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        return done.returncode == 0

    run("airflow-init")
    run("tables")
    with ExitStack() as stack:
        for service, part in (
            ("airflow-api-server", "metadatabase"),
            ("airflow-dag-processor", "dag_processor"),
            ("airflow-triggerer", "triggerer"),
            ("airflow-scheduler", "scheduler"),
        ):
            stack.enter_context(
                server(
                    compose.command(service, **variables),
                    folder / f"{service}.log",
                    lambda part=part: well(part),
                    timeout=240,
                    stop_with=SIGTERM,
                    env=environment,
                )
            )
        yield SimpleNamespace(address=f"http://{HOST}:{port}", folder=folder)


def spark_conf(folder, metastore_service):
    """The image's Spark settings, with this machine's metastore and warehouse."""
    folder.mkdir()
    text = (compose.DOCKER / "spark-defaults.conf").read_text()
    for there, here in (
        ("thrift://metastore:9083", metastore_service.uri),
        ("/warehouse", str(metastore_service.warehouse)),
    ):
        assert there in text
        text = text.replace(there, here)
    (folder / "spark-defaults.conf").write_text(text)
    return folder


def ask(airflow, path, token=None, body=None):
    """A page of the API server, JSON or text."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(airflow.address + path, data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    return json.loads(text) if text.startswith(("{", "[")) else text


def wait_for(what, seconds=240):
    deadline = time.monotonic() + seconds
    while (found := what()) is None:
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(1)
    return found


def test_the_example_runs_on_the_cluster_and_its_links_lead_somewhere(airflow):
    token = ask(airflow, "/auth/token")["access_token"]
    dag = "/api/v2/dags/cluster_sales"

    def parsed():
        try:
            return ask(airflow, dag, token)
        except urllib.error.HTTPError as error:
            assert error.code == 404
            return None

    wait_for(parsed)
    run = ask(airflow, f"{dag}/dagRuns", token, {"logical_date": None, "conf": {"month": 11}})
    at = f"{dag}/dagRuns/{urllib.request.quote(run['dag_run_id'])}"

    def ended():
        state = ask(airflow, at, token)["state"]
        return state if state in ("success", "failed") else None

    assert wait_for(ended) == "success"
    task = f"{at}/taskInstances/sales_by_category"
    summary = ask(airflow, f"{task}/xcomEntries/return_value?deserialize=true", token)["value"]
    assert (summary["kept"], summary["total"], summary["reason"]) == (30, 366, "PRUNED")
    links = ask(airflow, f"{task}/links", token)["extra_links"]
    assert links["Spark UI"].endswith(f"/app/?appId={summary['application_id']}")
    explained = ask(airflow, links["Explain pruning"], token)
    assert explained.startswith("kept 30 of 366 partitions (91.8 % pruned)")
    descriptor = ask(airflow, links["Partition descriptor"], token)
    assert descriptor["sha256"] == summary["digest"]
