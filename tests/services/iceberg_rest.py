"""Iceberg's own REST catalog as a process, with its tables' names in PostgreSQL.

The catalog's servlet is in the jar of Iceberg's tests. Py4J starts it, so no Java is compiled here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.jars import jars
from tests.services.java_options import SHORT_LIVED
from tests.services.metastore import jdbc_driver
from tests.services.postgres import Postgres
from tests.services.processes import HOST

SET = "iceberg-rest"


@dataclass(frozen=True)
class RestCatalog:
    """A running catalog; the data of new tables is under ``warehouse``."""

    port: int
    warehouse: Path

    @property
    def uri(self) -> str:
        """The catalog's URI for its clients."""
        return f"http://{HOST}:{self.port}"


@contextmanager
def iceberg_rest(
    folder: Path, database_server: Postgres, database: str = "iceberg_rest"
) -> Iterator[RestCatalog]:
    """Runs a catalog for the block, with its entries in ``database``, created if necessary."""
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    warehouse = folder / "warehouse"
    database_server.create_database(database)
    hadoop = sorted(Path(pyspark.__file__).parent.glob("jars/hadoop-client-*.jar"))
    logging = sorted(Path(pyspark.__file__).parent.glob("jars/jcl-over-slf4j-*.jar"))
    needed = (*jars(SET), jdbc_driver(), *hadoop, *logging)
    with (folder / "rest.log").open("w") as log:
        port, process = launch_gateway(
            jarpath=_py4j_jar(),
            classpath=":".join(map(str, needed)),
            javaopts=[*SHORT_LIVED.split(), "-Xmx256m"],
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        try:
            properties = {
                "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri": database_server.jdbc_url(database),
                "jdbc.user": database_server.user,
                "jdbc.password": database_server.password,
                "jdbc.schema-version": "V1",  # with views
                "warehouse": str(warehouse),
            }
            yield RestCatalog(_serve(gateway.jvm, properties), warehouse)
        finally:
            gateway.close()
            _end(process)


def _serve(jvm: Any, properties: dict[str, str]) -> int:
    """Starts the servlet; returns its port."""
    iceberg, jetty = jvm.org.apache.iceberg, jvm.org.eclipse.jetty
    backend = iceberg.CatalogUtil.buildIcebergCatalog(
        "backend", properties, jvm.org.apache.hadoop.conf.Configuration()
    )
    servlet = iceberg.rest.RESTCatalogServlet(iceberg.rest.RESTCatalogAdapter(backend))
    handler = jetty.servlet.ServletContextHandler()
    handler.setContextPath("/")
    handler.addServlet(jetty.servlet.ServletHolder(servlet), "/*")
    web = jetty.server.Server(jvm.java.net.InetSocketAddress(HOST, 0))
    web.setHandler(handler)
    web.start()
    return int(web.getURI().getPort())


def _py4j_jar() -> str:
    """PySpark's wheel has Py4J's jar among those of Spark."""
    (found,) = Path(pyspark.__file__).parent.glob("jars/py4j-*.jar")
    return str(found)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # a catalog that is thrown away has nothing to write
    process.wait()
