"""A Spark Connect server on loopback, from PySpark's jars, with Hive support."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM, Signals

from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.processes import HOST, end, lasting_port, listens, server
from tests.services.spark_settings import LONG_LIVED, in_memory_metastore


@dataclass(frozen=True)
class ConnectServer:
    """A running server."""

    host: str
    port: int
    log: Path
    _start: Callable[[], subprocess.Popen[bytes]] = field(repr=False)
    _running: list[subprocess.Popen[bytes]] = field(repr=False, default_factory=list)

    @property
    def url(self) -> str:
        return f"sc://{self.host}:{self.port}"

    def kill(self, how: Signals) -> None:
        """Ends the server by a signal."""
        end(self._running.pop(), how)

    def send(self, how: Signals) -> None:
        """Sends a signal to the server's process."""
        self._running[-1].send_signal(how)

    def start(self) -> None:
        """Starts the server, at the same port."""
        self._running.append(self._start())


@contextmanager
def spark_connect(
    folder: Path, own: Mapping[str, str] | None = None, host: str = HOST
) -> Iterator[ConnectServer]:
    """Runs a server with its own warehouse, and with settings of its ``own``, for the block.

    It listens at ``host``, an address of this machine.

    Raises :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    (folder / "warehouse" / "tables").mkdir(parents=True)
    port = lasting_port(host)
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        "spark.sql.catalogImplementation": "hive",
        **in_memory_metastore("connect"),
        **LONG_LIVED,
        **({} if host == HOST else {"spark.driver.host": host, "spark.driver.bindAddress": host}),
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
        **(own or {}),
    }
    command = [str(Path(sys.executable).parent / "spark-submit")]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = folder / "connect.log"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with ExitStack() as stack:

        def start() -> subprocess.Popen[bytes]:
            options = {"stop_with": SIGTERM, "cwd": folder, "env": environment}
            started = server(
                [*command, "spark-internal"], log, lambda: listens(port, host), **options
            )
            return stack.enter_context(started)

        running = ConnectServer(host, port, log, start)
        running.start()
        yield running
