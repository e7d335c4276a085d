"""A real Hive Metastore service, from the jars that PySpark brings, on PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from xml.sax.saxutils import escape

from airflow_hive_opt.spark.java import ensure_java
from tests.services.postgres import Postgres
from tests.services.processes import HOST, ServiceError, free_port, listens, server

MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
SCHEMA_TOOL = "org.datanucleus.store.schema.SchemaTool"
DRIVER = Path(sys.prefix, "share", "java", "postgresql.jar")  # `make services` puts it there
_OPENED = ("java.lang", "java.net", "java.util", "java.util.concurrent")
# A short life gains nothing from Java's best compiler.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{8}
"""


@dataclass(frozen=True)
class MetastoreService:
    """A running metastore; new tables' data lies under ``warehouse``."""

    port: int
    warehouse: Path
    log: Path
    host: str = HOST

    @property
    def uri(self) -> str:
        """``hive.metastore.uris`` for its clients."""
        return f"thrift://{self.host}:{self.port}"

    def spark_conf(self) -> dict[str, str]:
        """Spark's settings for a session on this metastore."""
        return {
            "spark.hadoop.hive.metastore.uris": self.uri,
            "spark.sql.warehouse.dir": str(self.warehouse),
        }


@contextmanager
def metastore(
    folder: Path,
    database_server: Postgres,
    database: str = "metastore",
    java_options: tuple[str, ...] = SHORT_LIVED,
    settings: Mapping[str, str] | None = None,
) -> Iterator[MetastoreService]:
    """A metastore until the block ends, its tables in ``database``, made where there is none.

    ``settings`` are further Hive properties. Raises
    :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    warehouse = folder / "warehouse"
    warehouse.mkdir(exist_ok=True)
    connection = {
        "ConnectionURL": database_server.jdbc_url(database),
        "ConnectionDriverName": "org.postgresql.Driver",
        "ConnectionUserName": database_server.user,
        "ConnectionPassword": database_server.password,
    }
    database_server.create_database(database)
    with database_server.connect(database) as probe:
        if probe.execute("SELECT to_regclass('\"TBLS\"')").fetchone() == (None,):
            _create_schema(folder, connection)
    _private(
        folder / "hive-site.xml",
        _site(
            {
                **{f"javax.jdo.option.{name}": value for name, value in connection.items()},
                "hive.metastore.warehouse.dir": str(warehouse),
                "hive.metastore.uris": "",
                "hive.metastore.schema.verification": "false",
                "datanucleus.schema.autoCreateAll": "true",  # one sequence table is still missing
                **(settings or {}),
            }
        ),
    )
    (folder / "log4j2.properties").write_text(_LOG4J)
    port = free_port()
    command = [
        *(_java(), *java_options),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        f"-Dlog4j.configurationFile={folder / 'log4j2.properties'}",
        *("-cp", f"{folder}:{_class_path()}", MAIN, "-p", str(port)),
    ]
    log = folder / "metastore.log"
    with server(command, log, lambda: listens(port), stop_with=SIGTERM, cwd=folder):
        yield MetastoreService(port, warehouse, log)


def _create_schema(folder: Path, connection: Mapping[str, str]) -> None:
    """Makes the metastore's tables at once.

    Left to itself the metastore makes each on first use, and two sessions that do so deadlock.
    """
    (jar,) = _jars().glob("hive-metastore-*.jar")
    with zipfile.ZipFile(jar) as archive:
        (folder / "package.jdo").write_bytes(archive.read("package.jdo"))
    properties = {
        **connection,
        "identifierFactory": "datanucleus1",
        "rdbms.useLegacyNativeValueStrategy": "true",
    }
    _private(
        folder / "schema.properties",
        "".join(f"datanucleus.{name}={value}\n" for name, value in properties.items()),
    )
    done = subprocess.run(
        [
            *(_java(), *SHORT_LIVED, "-cp", _class_path(), SCHEMA_TOOL, "-create", "-api", "JDO"),
            *("-props", str(folder / "schema.properties"), str(folder / "package.jdo")),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if done.returncode:
        raise ServiceError(f"the metastore's tables can't be made: {done.stdout}{done.stderr}")


def jdbc_driver() -> Path:
    """PostgreSQL's Java driver; raises :class:`ServiceError` where there is none."""
    if not DRIVER.exists():
        raise ServiceError(f"PostgreSQL's Java driver is not at {DRIVER}: run `make services`")
    return DRIVER


def _class_path() -> str:
    return f"{_jars()}/*:{jdbc_driver()}"


def _jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def _private(path: Path, text: str) -> None:
    """A file that only its owner reads: a password on a command line is anyone's to see."""
    path.touch(mode=0o600)
    path.write_text(text)


def _site(settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n"
