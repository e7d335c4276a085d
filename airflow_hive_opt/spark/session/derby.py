"""The tables of an embedded warehouse, read from its metastore's database without Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Optional

_SQL = """\
connect 'jdbc:derby:;databaseName={};user=APP';
SELECT D.NAME, T.TBL_NAME FROM APP.DBS D LEFT JOIN APP.TBLS T ON T.DB_ID = D.DB_ID;
"""
_ROW = re.compile(r"^(\w+) *\|(\w+) *$", re.MULTILINE)
_WHOLE = re.compile(r"^\d+ rows? selected", re.MULTILINE)
# Files by which Spark may use another metastore.
_CONFIGURATIONS = ("hive-site.xml", "core-site.xml", "spark-defaults.conf")
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dderby.stream.error.file=/dev/null")


def embedded_tables(warehouse: Path) -> Optional[Mapping[str, frozenset[str]]]:
    """The names of tables and views by database; ``None`` if they can't be known.

    It takes about a second. The tables can't be known while a Spark uses the
    metastore, if configuration files may name another metastore, or before Spark 4.0, which does
    not contain Derby's tools.
    """
    folder = warehouse.absolute() / "metastore_db"
    spark = find_spec("pyspark")
    if spark is None or not spark.origin or not folder.is_dir() or "'" in str(folder):
        return None
    home = Path(spark.origin).parent
    if ";" in str(folder) or _is_configured(home):
        return None
    java_home = os.environ.get("JAVA_HOME")
    java = str(Path(java_home, "bin", "java")) if java_home else shutil.which("java")
    jars = os.pathsep.join(map(str, (home / "jars").glob("derby*.jar")))
    command = [java or "java", *_OPTIONS, "-cp", jars, "org.apache.derby.tools.ij"]
    try:
        done = subprocess.run(
            command,
            input=_SQL.format(folder),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if not _WHOLE.search(done.stdout):
        return None
    found: dict[str, set[str]] = {}
    for database, table in _ROW.findall(done.stdout):
        names = found.setdefault(database, set())
        if table != "NULL":
            names.add(table)
    return {database: frozenset(names) for database, names in found.items()}


def _is_configured(home: Path) -> bool:
    named = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "HIVE_CONF_DIR")
    folders = [Path(os.environ[name]) for name in named if os.environ.get(name)]
    folders.append(Path(os.environ.get("SPARK_HOME") or home, "conf"))
    return any((folder / name).exists() for folder in folders for name in _CONFIGURATIONS)
