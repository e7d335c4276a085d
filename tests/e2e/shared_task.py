"""One task in a shared Spark: ``python -m tests.e2e.shared_task WAREHOUSE JSON``.

The JSON has ``statements``, Spark's ``conf``, ``own`` for a Spark that is not shared, ``hold``,
the seconds after them, ``alarm``, the seconds after which the task is interrupted, and ``times``,
how many sessions there are, one after the other. Prints one line before it waits for a session, one
when it is ready, and one with the rows of each statement.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.session.embedded_warehouse import embedded_conf
from airflow_hive_opt.spark.session.java import SparkStartError
from airflow_hive_opt.spark.session.session import spark_session
from airflow_hive_opt.spark.session.shared import shared_session
from airflow_hive_opt.spark.session.shared_settings import Bounds
from tests.services.java_options import SHORT_LIVED

OF_THE_JVM = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": SHORT_LIVED}


class LateError(BaseException):
    """What Airflow raises after ``execution_timeout``, wherever the task is."""


def late(*_: object) -> None:
    raise LateError


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGALRM, late)
    given = json.loads(sys.argv[2])
    for _ in range(given.get("times", 1)):
        run(given)


def run(given: dict) -> None:
    conf = {**embedded_conf(Path(sys.argv[1]), "local[2]"), **OF_THE_JVM}
    bounds, stopped = Bounds(**given.get("bounds", {})), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    say(waits=True)
    if given.get("own"):
        own(conf, given)
        return
    try:
        with shared_session({**conf, **given.get("conf", {})}, bounds, stopped) as shared:
            signal.signal(signal.SIGTERM, lambda *_: shared.interrupt())
            java = shared.session._jvm.java.lang.management.ManagementFactory
            tracker = shared.session.sparkContext._jsc.sc().statusTracker()
            active = len(tracker.getActiveJobIds())
            say(ready=java.getRuntimeMXBean().getName(), at=time.time(), active=active)
            signal.alarm(given.get("alarm", 0))
            for statement in given["statements"]:
                try:
                    rows = shared.session.sql(statement).collect()
                    say(rows=[list(row) for row in rows])
                except (PySparkException, Py4JError, ConnectionError) as error:
                    say(error=str(error)[:200], why=shared.why_failed())
            time.sleep(given.get("hold", 0))
    except SparkStartError as error:
        say(refused=str(error), kind=type(error).__name__)
    except LateError:
        say(late=True)


def own(conf: dict, given: dict) -> None:
    try:
        with spark_session("own", conf) as session:
            say(ready=True)
            signal.alarm(given["alarm"])
            for statement in given["statements"]:
                say(rows=[list(row) for row in session.sql(statement).collect()])
    except LateError:
        say(late=True)


if __name__ == "__main__":
    main()
