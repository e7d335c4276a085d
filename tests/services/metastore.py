"""A real Hive Metastore service on PostgreSQL, from PySpark's jars.

``docker/metastore.py`` starts it, as in its container.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from types import MappingProxyType
from xml.sax.saxutils import escape

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services import compose
from tests.services.jars import jars
from tests.services.java_options import SHORT_LIVED
from tests.services.postgres import Postgres
from tests.services.processes import HOST, ServiceError, free_port, listens, server

DRIVER = Path(sys.prefix, "share", "java", "postgresql.jar")  # `make services` puts it there


@dataclass(frozen=True)
class MetastoreService:
    """A running metastore; the data of new tables is under ``warehouse``."""

    port: int
    warehouse: Path
    log: Path
    host: str = HOST

    @property
    def uri(self) -> str:
        """``hive.metastore.uris`` for its clients."""
        return f"thrift://{self.host}:{self.port}"

    @property
    def connection(self) -> str:
        """Airflow's connection to it, as JSON."""
        document = {"conn_type": "hive_metastore", "host": self.host, "port": self.port}
        return json.dumps(document)

    def spark_conf(self) -> dict[str, str]:
        """Spark's settings for a session on this metastore."""
        return {
            "spark.hadoop.hive.metastore.uris": self.uri,
            "spark.sql.warehouse.dir": str(self.warehouse),
        }


# A client of Hive 2.3, which Spark brings, calls get_table, which Hive 4 does not have any more.
_CLIENTS = {"hive-4.0": ("4.0.1", "hive-client-4.0")}


def client_conf(version: str | None) -> dict[str, str]:
    """Spark's settings for a client that the metastore of this version understands."""
    if version not in _CLIENTS:
        return {}
    release, client = _CLIENTS[version]
    return {
        "spark.sql.hive.metastore.version": release,
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": ",".join(f"file://{jar}" for jar in jars(client)),
    }


@contextmanager
def metastore(
    folder: Path,
    database_server: Postgres,
    database: str = "metastore",
    java_options: str = SHORT_LIVED,
    version: str | None = None,
    beside: Sequence[Path] = (),
    settings: Mapping[str, str] = MappingProxyType({}),
    of_hadoop: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[MetastoreService]:
    """Runs a metastore for the block, with its tables in ``database``, created if necessary.

    ``version`` names a set of jars, such as ``hive-4.0``; the default are PySpark's, with Hive 2.3.
    ``beside`` are more jars. ``settings`` are Hive's, and Hadoop's such as those of a storage;
    ``of_hadoop`` are those of its ``core-site.xml``. Raises
    :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    warehouse = folder / "warehouse"
    warehouse.mkdir(exist_ok=True)
    database_server.create_database(database)
    port = free_port()
    command = compose.command(
        "metastore", HERE=compose.DOCKER, METASTORE_FOLDER=folder, METASTORE_PORT=port
    )
    for name, text in settings.items():
        command += ["--hiveconf", f"{name}={text}"]
    if of_hadoop:
        (folder / "core-site.xml").write_text(site_xml(of_hadoop))
    environment = {
        **os.environ,
        **compose.environment(
            "metastore",
            **database_server.variables(),
            METASTORE_DATABASE=database,
            WAREHOUSE=warehouse,
        ),
        "METASTORE_DRIVER": ":".join(map(str, (jdbc_driver(), *beside))),
        "JDK_JAVA_OPTIONS": java_options,
    }
    if version is not None:
        environment["METASTORE_JARS"] = ":".join(map(str, jars(version)))
    log = folder / "metastore.log"
    options = {"stop_with": SIGTERM, "cwd": folder, "env": environment}
    with server(command, log, lambda: listens(port), **options):
        yield MetastoreService(port, warehouse, log)


def site_xml(settings: Mapping[str, str]) -> str:
    """The text of a configuration file of Hadoop's."""
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(text)}</value></property>"
        for name, text in settings.items()
    )
    return f"<configuration>{properties}</configuration>"


def jdbc_driver() -> Path:
    """PostgreSQL's Java driver; raises :class:`ServiceError` if there is none."""
    if not DRIVER.exists():
        raise ServiceError(f"PostgreSQL's Java driver is not at {DRIVER}: run `make services`")
    return DRIVER
