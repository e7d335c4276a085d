"""A Spark standalone cluster on loopback: a master and workers, as its containers start."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services import compose
from tests.services.java_options import SHORT_LIVED
from tests.services.processes import HOST, free_port, server

# Servers that live for minutes gain nothing from the best compiler.
_DAEMON = {
    "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
    "SPARK_LOCAL_IP": HOST,
    "SPARK_LOCAL_HOSTNAME": HOST,
}


@dataclass(frozen=True)
class Standalone:
    """A running cluster."""

    port: int
    ui_port: int
    rest_port: int
    workers: Sequence[subprocess.Popen[bytes]]

    @property
    def variables(self) -> dict[str, object]:
        """The variables of ``docker/compose.yaml`` that name this cluster."""
        return {
            "SPARK_MASTER_HOST": HOST,
            "SPARK_MASTER_PORT": self.port,
            "SPARK_MASTER_UI_PORT": self.ui_port,
        }

    @property
    def url(self) -> str:
        """The master's URL."""
        return f"spark://{HOST}:{self.port}"

    @property
    def cluster_mode(self) -> str:
        """A connection whose drivers run on the workers, as JSON."""
        extra = {"deploy-mode": "cluster", "rest-port": self.rest_port}
        return json.dumps({"conn_type": "spark", "host": self.url, "extra": extra})

    def state(self) -> dict[str, Any]:
        """What the master says of itself: workers, active and completed applications."""
        with urllib.request.urlopen(f"http://{HOST}:{self.ui_port}/json/", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A cluster until the block ends; raises :class:`~tests.services.processes.ServiceError`."""
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    port, ui_port, rest_port = free_port(), free_port(), free_port()
    running: list[subprocess.Popen[bytes]] = []
    cluster = Standalone(port, ui_port, rest_port, running)
    rest = f"-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest_port}"

    with ExitStack() as stack:

        def start(
            service: str, name: str, expected: int, **variables: object
        ) -> subprocess.Popen[bytes]:
            def ready() -> bool:
                try:
                    return bool(cluster.state()["aliveworkers"] >= expected)
                except (OSError, ValueError):  # it answers with a page until its parts are there
                    return False

            command = compose.command(service, **cluster.variables, **variables)
            environment = {**os.environ, **compose.environment(service), **_DAEMON}
            environment["SPARK_MASTER_OPTS"] = rest
            log = folder / f"{name}.log"
            return stack.enter_context(
                server(command, log, ready, stop_with=SIGTERM, env=environment)
            )

        start("spark-master", "master", 0)
        for number in range(1, workers + 1):
            work = {"SPARK_WORKER_UI_PORT": 0, "SPARK_WORKER_FOLDER": folder / f"work-{number}"}
            running.append(start("spark-worker", f"worker-{number}", number, **work))
        yield cluster
