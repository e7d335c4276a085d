"""Logs what the JVM of the embedded Spark writes to its standard error, by Spark's own levels.

Airflow shows everything that a task's child processes write there as errors.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from airflow_hive_opt.documents.log_text import plain

LOGGER = "spark"
LOG_LEVEL = "spark.log.level"
"""Spark's setting for its log level. If it is set, no line is left out."""
_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_OPTIONS = "SPARK_SUBMIT_OPTS"  # Spark puts other Java options after these, so those win
_JAVA_VARIABLES = (_OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OF_LOG4J = re.compile(r"-Dlog4j2?\.configuration")

# A line of log4j: perhaps a time, then the level. Lines without a level continue the line before.
_EVENT = re.compile(r"(?:[\d/:.,TZ-]+ )*\[?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\]? +(.*)")
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
# What Java says at its start about modules that Spark asks for, and native code that Hadoop loads.
_OF_JAVA = re.compile(
    r"WARNING: (Using incubator modules|A restricted method|A terminally deprecated|java\.lang\."
    r"|sun\.misc\.|Restricted methods will|Use --enable-native-access|Please consider reporting)"
    r"|(NOTE: )?Picked up J"
)


class SparkLog:
    """Starts the JVM of a Spark with these settings, and logs its lines in a thread."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._conf = conf
        self._is_whole = is_configured(conf)
        self._last: deque[str] = deque(maxlen=5)
        reading, writing = os.pipe()
        self._writing: Optional[int] = writing
        self._thread = threading.Thread(target=self._relay, args=(reading,), daemon=True)
        self._thread.start()

    def launch(self) -> None:
        """Starts the JVM as PySpark's gateway; raises PySpark's error if it ends at once.

        This package's file leaves out lines that are known to be harmless. A user's own
        configuration of Spark's log is used instead of it.
        """
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway

        if SparkContext._gateway is not None:
            return  # a Spark that the caller has stopped leaves its JVM, which holds the metastore
        start: Any = launch_gateway
        options = os.environ.get(_OPTIONS)
        if not self._is_whole:
            quiet_py4j()
            ours = f"-Dlog4j2.configurationFile={_CONFIGURATION.as_uri()}"
            os.environ[_OPTIONS] = f"{ours} {options or ''}"
        try:
            conf = SparkConf().setAll(list(self._conf.items()))
            SparkContext._gateway = start(conf, {"stderr": self._writing})
        finally:
            self._close_writing()  # the JVM has its own; a child process must not keep this one
            os.environ.pop(_OPTIONS, None)
            if options is not None:
                os.environ[_OPTIONS] = options
        SparkContext._jvm = SparkContext._gateway.jvm

    def close(self) -> None:
        """Waits until the last line of a JVM that has ended is logged; may be called again."""
        self._close_writing()
        self._thread.join(timeout=10)

    def _close_writing(self) -> None:
        if self._writing is not None:
            os.close(self._writing)
            self._writing = None

    def last_words(self) -> str:
        """The lines of a JVM that could not start; closes the log."""
        self.close()
        return "; ".join(self._last)

    def _relay(self, reading: int) -> None:
        log = logging.getLogger(LOGGER)
        level = logging.INFO
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                text = plain(line.rstrip("\n"), keep="\t")
                event = _EVENT.match(text)
                if event:
                    level, text = _LEVELS[event[1]], event[2]
                elif _OF_JAVA.match(text):
                    log.log(logging.INFO if self._is_whole else logging.DEBUG, "%s", text)
                    continue
                else:
                    self._last.append(text)
                log.log(level, "%s", text)


def is_configured(conf: Mapping[str, str]) -> bool:
    """Whether the user has chosen a level or a configuration file for Spark's log."""
    options = [value for name, value in conf.items() if name.endswith("JavaOptions")]
    options += [os.environ.get(name, "") for name in _JAVA_VARIABLES]
    if LOG_LEVEL in conf or any(map(_OF_LOG4J.search, options)):
        return True
    import pyspark  # late: the command line needs this module's names without Spark

    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    folder = Path(os.environ.get("SPARK_CONF_DIR") or f"{home}/conf")
    if any(found.suffix != ".template" for found in folder.glob("log4j*")):
        return True
    try:
        defaults = (folder / "spark-defaults.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = [line for line in defaults.splitlines() if not line.lstrip().startswith("#")]
    return any(LOG_LEVEL in line or _OF_LOG4J.search(line) for line in lines)


def quiet_py4j() -> None:
    """Leaves out Py4J's lines about connections that end, unless the user has set its level."""
    py4j = logging.getLogger("py4j")
    if py4j.level == logging.NOTSET:
        py4j.setLevel(logging.WARNING)
