"""Spark's Thrift server on loopback, from PySpark's jars: it speaks HiveServer2's protocol."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import Any
from urllib.request import urlopen

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.processes import HOST, free_port, listens, server
from tests.services.spark_settings import LONG_LIVED

_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class ThriftServer:
    """A running server."""

    port: int
    ui: int
    log: Path

    def partitions_read(self) -> int:
        """How many partitions the last statement with scans has read, by Spark's own count."""
        of_apps = f"http://{HOST}:{self.ui}/api/v1/applications"
        (app,) = _json(of_apps)
        for execution in reversed(_json(f"{of_apps}/{app['id']}/sql?length=10000")):
            found = [
                int(metric["value"].replace(",", ""))
                for node in execution["nodes"]
                for metric in node["metrics"]
                if metric["name"] == "number of partitions read"
            ]
            if found:
                return sum(found)
        raise AssertionError("no statement has read partitions")

    def connection(self, database: str = "default") -> str:
        """Airflow's connection to it, as JSON."""
        document = {"conn_type": "hiveserver2", "host": HOST, "port": self.port}
        return json.dumps({**document, "schema": database})


def _json(url: str) -> Any:
    with urlopen(url, timeout=30) as answer:
        return json.load(answer)


@contextmanager
def thrift_server(folder: Path, conf: Mapping[str, str]) -> Iterator[ThriftServer]:
    """Runs a server with these settings of Spark for the block.

    Raises :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    port, ui = free_port(), free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.sql.catalogImplementation": "hive",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.port": str(ui),
        **LONG_LIVED,
        "spark.hadoop.hive.server2.thrift.bind.host": HOST,
        "spark.hadoop.hive.server2.thrift.port": str(port),
        **conf,
    }
    command = [str(Path(sys.executable).parent / "spark-submit")]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    log = folder / "thrift_server.log"
    with server(
        [*command, "--class", _CLASS, "spark-internal"],
        log,
        lambda: listens(port),
        stop_with=SIGTERM,
        cwd=folder,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    ):
        yield ThriftServer(port, ui, log)
