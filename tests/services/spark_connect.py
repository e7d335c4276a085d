"""A Spark Connect server on loopback, from PySpark's jars, with Hive support."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM

from airflow_hive_opt.spark.session.java import ensure_java
from airflow_hive_opt.spark.session.session import embedded_conf
from tests.services.processes import HOST, free_port, listens, server
from tests.services.spark_settings import LONG_LIVED, in_memory_metastore


@dataclass(frozen=True)
class ConnectServer:
    """A running server."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"sc://{HOST}:{self.port}"


@contextmanager
def spark_connect(folder: Path, own: Mapping[str, str] | None = None) -> Iterator[ConnectServer]:
    """Runs a server with its own warehouse, and with settings of its ``own``, for the block.

    Raises :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    (folder / "warehouse" / "tables").mkdir(parents=True)
    port = free_port()
    conf = {
        **embedded_conf(folder / "warehouse", "local[2]"),
        "spark.sql.catalogImplementation": "hive",
        **in_memory_metastore("connect"),
        **LONG_LIVED,
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        **(own or {}),
    }
    command = [str(Path(sys.executable).parent / "spark-submit")]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    log = folder / "connect.log"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with server(
        [*command, "spark-internal"],
        log,
        lambda: listens(port),
        stop_with=SIGTERM,
        cwd=folder,
        env=environment,
    ):
        yield ConnectServer(port, log)
