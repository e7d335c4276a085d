"""What must be equal for two tasks to share a Spark, and what each may set for itself."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from stat import S_ISREG

import pyspark

# Variables that Spark, Hadoop and the clients of storages read.
_ENVIRONMENT = (
    *("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "JAVA_", "JDK_", "KRB5", "LANG", "LC_"),
    *("PYSPARK_", "PYTHONPATH", "SPARK_", "TZ", "YARN_", "_JAVA_"),
)
# Variables that PySpark itself sets when it has connected.
_OF_PYSPARK = ("PYSPARK_PYTHON", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
# Folders of configuration files, by the variable that names them.
_CONFIGURATIONS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "HIVE_CONF_DIR", "YARN_CONF_DIR")
# Settings that a session may change. All others are those of the whole Spark.
_OF_A_SESSION = (
    "spark.sql.adaptive.",
    "spark.sql.ansi.",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.files.",
    "spark.sql.optimizer.",
    "spark.sql.orc.",
    "spark.sql.parquet.",
    "spark.sql.session.",
    "spark.sql.shuffle.",
    "spark.sql.statistics.",
)


@dataclass(frozen=True)
class Bounds:
    """``idle`` are the seconds without a task after which the shared Spark ends.

    At most ``tasks`` tasks use it at the same time.
    """

    idle: int = 300
    tasks: int = 16


def of_a_session(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that a session may change."""
    return {name: value for name, value in conf.items() if name.startswith(_OF_A_SESSION)}


def of_the_whole(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that Spark takes when it starts."""
    return {name: value for name, value in conf.items() if not name.startswith(_OF_A_SESSION)}


def digest_of(conf: Mapping[str, str], bounds: Bounds) -> str:
    """SHA-256 of all that a shared Spark takes when it starts.

    It covers settings, bounds, versions, the current folder, configuration files, and the variables
    of the environment that Spark, Hadoop and the clients of storages read.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_ENVIRONMENT) and name not in _OF_PYSPARK
    }
    same = (
        of_the_whole(conf),
        (bounds.idle, bounds.tasks),
        os.environ.get("PYSPARK_PYTHON", sys.executable),
        (sys.executable, version("pyspark"), version("airflow-hive-opt"), platform.node()),
        str(Path.cwd()),
        environment,
        _configuration_files(),
    )
    return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()


def _configuration_files() -> list[tuple[str, int, int]]:
    """The files that configure Spark, Hadoop and Hive, with their sizes and times of change."""
    folders = [os.environ[name] for name in _CONFIGURATIONS if os.environ.get(name)]
    if home := os.environ.get("SPARK_HOME"):
        folders.append(f"{home}/conf")
    folders.append(str(Path(pyspark.__file__).parent / "conf"))  # if SPARK_HOME is not set
    files = sorted(path for folder in folders for path in Path(folder).glob("*"))
    found = []
    for path in files:
        with suppress(FileNotFoundError):  # somebody is replacing it
            state = path.stat()
            if not S_ISREG(state.st_mode):
                continue
            found.append((str(path), state.st_size, state.st_mtime_ns))
    return found
