"""Runs a Hive Metastore service with a PostgreSQL database.

    python metastore.py FOLDER [OPTIONS OF HiveMetaStore, such as -p 9083 or --hiveconf NAME=VALUE]

Required environment variables: METASTORE_DB_URL (JDBC), METASTORE_DB_USER, METASTORE_DB_PASSWORD
and METASTORE_WAREHOUSE. METASTORE_DRIVER is the path of PostgreSQL's Java driver. The default is
the path in Debian's package. METASTORE_JARS has the paths of the metastore's jars, separated by
colons. The default are PySpark's jars, with Hive 2.3. The configuration in FOLDER contains the
password. The script creates the metastore's missing tables. The service then replaces the script's
process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import escape

MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
# The settings of a metastore that has no jars of Hive's compiler beside it.
ALONE = {
    "hive.metastore.expression.proxy": (
        "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy"
    ),
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
}
SCHEMA_TOOL = "org.datanucleus.store.schema.SchemaTool"
DRIVER = "/usr/share/java/postgresql.jar"
_OPENED = ("java.lang", "java.net", "java.util", "java.util.concurrent")
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


def main() -> None:
    """Writes the configuration, creates the tables, and starts the service in this process."""
    folder, *options = sys.argv[1:]
    at = Path(folder)
    at.mkdir(parents=True, exist_ok=True)
    connection = {
        "ConnectionURL": os.environ["METASTORE_DB_URL"],
        "ConnectionDriverName": "org.postgresql.Driver",
        "ConnectionUserName": os.environ["METASTORE_DB_USER"],
        "ConnectionPassword": os.environ["METASTORE_DB_PASSWORD"],
    }
    make_tables(at, connection)
    site = {
        **{f"javax.jdo.option.{name}": value for name, value in connection.items()},
        "hive.metastore.warehouse.dir": os.environ["METASTORE_WAREHOUSE"],
        "hive.metastore.uris": "",
        "hive.metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",  # the schema tool leaves out one sequence table
    }
    if "METASTORE_JARS" in os.environ:
        site |= ALONE
    private(at / "hive-site.xml", site_xml(site))
    log4j = at / "log4j2.properties"
    log4j.write_text(_LOG4J)
    command = [
        java(),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        f"-Dlog4j.configurationFile={log4j}",
        *("-cp", f"{at}:{class_path()}", MAIN, *options),
    ]
    os.execvp(command[0], command)  # noqa: S606 - signals must reach the service


def make_tables(folder: Path, connection: Mapping[str, str]) -> None:
    """Creates all missing tables of the metastore. Existing tables stay unchanged.

    Otherwise the metastore creates each table on first use. Two sessions that do so can deadlock.
    """
    (folder / "package.jdo").write_bytes(mapping())
    properties = {
        **connection,
        "identifierFactory": "datanucleus1",
        "rdbms.useLegacyNativeValueStrategy": "true",
    }
    lines = (f"datanucleus.{name}={value}\n" for name, value in properties.items())
    private(folder / "schema.properties", "".join(lines))
    arguments = ("-create", "-api", "JDO", "-props", str(folder / "schema.properties"))
    done = subprocess.run(
        [java(), "-cp", class_path(), SCHEMA_TOOL, *arguments, str(folder / "package.jdo")],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if done.returncode:
        sys.exit(f"the metastore's tables can't be created: {done.stdout}{done.stderr}")


def mapping() -> bytes:
    """The mapping of the metastore's classes to tables, from its own jar."""
    for jar in jars():
        with zipfile.ZipFile(jar) as archive:
            if "package.jdo" in archive.namelist():
                return archive.read("package.jdo")
    sys.exit("no jar has the metastore's package.jdo")


def class_path() -> str:
    """The metastore's jars and PostgreSQL's driver."""
    return ":".join((*map(str, jars()), os.environ.get("METASTORE_DRIVER", DRIVER)))


@cache
def jars() -> list[Path]:
    """The metastore's jars; those of another version than PySpark's run with PySpark's Hadoop."""
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        sys.exit("PySpark is not installed")
    folder = Path(pyspark.origin).parent / "jars"
    if given := os.environ.get("METASTORE_JARS"):
        return [*map(Path, given.split(":")), *sorted(folder.glob("hadoop-client-*.jar"))]
    return sorted(folder.glob("*.jar"))


def java() -> str:
    """The Java of ``JAVA_HOME``, otherwise the Java on ``PATH``."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def private(path: Path, text: str) -> None:
    """Writes a file that only its owner can read.

    A password on a command line is visible to all users of the machine.
    """
    path.touch(mode=0o600)
    path.write_text(text)


def site_xml(settings: Mapping[str, str]) -> str:
    """The text of Hive's configuration file."""
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in settings.items()
    )
    return f"<configuration>\n{properties}</configuration>\n"


if __name__ == "__main__":
    main()
