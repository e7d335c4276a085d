"""A Spark standalone cluster on loopback: a master and workers, from PySpark's own files."""

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

import pyspark

from airflow_hive_opt.spark.java import ensure_java
from tests.services.processes import HOST, free_port, server

SPARK_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
# Servers that live for minutes need no heap of a gigabyte and gain nothing from the best compiler.
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_LOCAL_IP": HOST,
}


def master_command(port: int, ui_port: int) -> list[str]:
    """The command that starts a master."""
    options = ["--host", HOST, "--port", str(port), "--webui-port", str(ui_port)]
    return [str(SPARK_HOME / "bin" / "spark-class"), f"{_DEPLOY}.master.Master", *options]


def worker_command(master: str, folder: Path, cores: int = 1, memory: str = "1g") -> list[str]:
    """The command that starts a worker of ``master``, an URL."""
    options = ["--host", HOST, "--cores", str(cores), "--memory", memory, "--webui-port", "0"]
    script = str(SPARK_HOME / "bin" / "spark-class")
    return [script, f"{_DEPLOY}.worker.Worker", *options, "--work-dir", str(folder), master]


@dataclass(frozen=True)
class Standalone:
    """A running cluster."""

    port: int
    ui_port: int
    workers: Sequence[subprocess.Popen[bytes]]

    @property
    def url(self) -> str:
        """The master's URL."""
        return f"spark://{HOST}:{self.port}"

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
    port, ui_port = free_port(), free_port()
    environment = {**os.environ, **_DAEMON}
    running: list[subprocess.Popen[bytes]] = []
    cluster = Standalone(port, ui_port, running)

    with ExitStack() as stack:

        def start(command: list[str], name: str, expected: int) -> subprocess.Popen[bytes]:
            def ready() -> bool:
                try:
                    return bool(cluster.state()["aliveworkers"] >= expected)
                except OSError:
                    return False

            log = folder / f"{name}.log"
            return stack.enter_context(
                server(command, log, ready, stop_with=SIGTERM, env=environment)
            )

        start(master_command(port, ui_port), "master", 0)
        for number in range(1, workers + 1):
            command = worker_command(cluster.url, folder / f"work-{number}")
            running.append(start(command, f"worker-{number}", number))
        yield cluster
