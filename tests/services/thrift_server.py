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

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.processes import HOST, free_port, listens, server
from tests.services.spark_settings import LONG_LIVED

_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@dataclass(frozen=True)
class ThriftServer:
    """A running server."""

    port: int
    log: Path

    def connection(self, database: str = "default") -> str:
        """Airflow's connection to it, as JSON; impyla speaks HiveServer2's protocol too."""
        document = {"conn_type": "impala", "host": HOST, "port": self.port, "schema": database}
        return json.dumps({**document, "login": "tests", "extra": {"auth_mechanism": "PLAIN"}})


@contextmanager
def thrift_server(folder: Path, conf: Mapping[str, str]) -> Iterator[ThriftServer]:
    """Runs a server with these settings of Spark for the block.

    Raises :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = {
        "spark.master": "local[2]",
        "spark.sql.catalogImplementation": "hive",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.ui.enabled": "false",
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
        yield ThriftServer(port, log)
