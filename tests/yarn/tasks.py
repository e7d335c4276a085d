"""Operators as tasks run them on a YARN cluster."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
from airflow.providers.common.compat.sdk import AirflowException

# Classes of containers: a driver in cluster mode, what stands for it in client mode, an executor.
MASTER, LAUNCHER = "deploy.yarn.ApplicationMaster", "deploy.yarn.ExecutorLauncher"
EXECUTOR = "YarnCoarseGrainedExecutorBackend"
ITEMS = "SELECT s.item, s.ds FROM shop.sales s JOIN shop.days d ON s.ds = d.ds WHERE d.week = 2"
# Runs for longer than any test; hash is not understood by the planner as a constant.
FOREVER = (
    "SELECT CAST(count(*) AS INT) AS item, 0 AS ds FROM shop.sales s JOIN shop.days d "
    "ON s.ds = d.ds AND d.week = 2 CROSS JOIN (SELECT id FROM range(0, {rows}, 1, 8)) r "
    "WHERE pmod(hash(s.item, r.id), 7) >= 0"
)


class Store(dict):
    """What Airflow keeps of a task between its tries."""

    def set(self, key: str, value: str, **_: Any) -> None:
        """As Airflow's store."""
        self[key] = value


def context(store: Store | None = None, try_number: int = 1) -> dict[str, Any]:
    """The context of one try."""
    instance = SimpleNamespace(
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=-1,
        try_number=try_number,
        max_tries=1,
        stats_tags={},
        xcom_push=lambda key, value: None,
    )
    return {
        "ti": instance,
        "params": {},
        "dag_run": SimpleNamespace(clear_number=0),
        "task_state_store": Store() if store is None else store,
        "outlet_events": {},
    }


def made(operator: type, sql: str, folder: Path, conf: dict[str, str], **options: Any) -> Any:
    """The operator, whose driver has this Python."""
    own = {
        **conf,
        "spark.pyspark.python": sys.executable,
        "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.submit.waitAppCompletion.interval": "1s",
        "spark.yarn.report.interval": "200ms",
    }
    return operator(
        task_id="t", conn_id="cluster", sql=sql, conf=own, descriptor_path=str(folder), **options
    )


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    """Waits until something has happened."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.2)


def containers(cluster, kind: str) -> list[psutil.Process]:
    """The JVMs of containers of a class."""
    below = psutil.Process(cluster.node.pid).children(recursive=True)
    return [each for each in below if _is_jvm_of(each, kind)]


def submitter(process: int) -> psutil.Process:
    """The JVM of a process's spark-submit; with the driver in it, in client mode."""
    below = psutil.Process(process).children(recursive=True)
    (found,) = (each for each in below if _is_jvm_of(each, "/main.py"))
    return found


def _is_jvm_of(process: psutil.Process, kind: str) -> bool:
    try:
        return process.name() == "java" and any(kind in word for word in process.cmdline())
    except psutil.NoSuchProcess:
        return False


class Started:
    """A task in a thread, and the message with which it failed."""

    def __init__(self, operator, found) -> None:
        self.message = self.summary = None
        self._operator, self._found = operator, found
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.summary = self._operator.execute(self._found)
        except AirflowException as error:
            self.message = str(error)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def wait(self, seconds: float = 120) -> None:
        self._thread.join(timeout=seconds)
        assert not self._thread.is_alive()


_TRY = """
import json, sys
from pathlib import Path
from airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator
from tests.yarn.tasks import Store, context, made

folder, sql, (conf, options) = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

class Kept(Store):
    def set(self, key, value, **_):
        super().set(key, value)
        (folder / "store.json").write_text(json.dumps(self))

made(MapJoinPruneOperator, sql, folder, conf, **options).execute(context(Kept()))
"""


def worker(folder: Path, sql: str, conf: dict[str, str], **options: Any) -> subprocess.Popen:
    """A task in a process of its own; what Airflow keeps of it is in ``store.json``."""
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _TRY, str(folder), sql, json.dumps([conf, options])],
            stdout=log,
            stderr=log,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
