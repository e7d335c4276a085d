"""A task whose statement runs on a Spark Connect server."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from signal import SIGCONT, SIGSTOP, Signals
from typing import Any

from tests.kills.airflow_task import AirflowTask
from tests.services.airflow import Airflow
from tests.services.postgres import Postgres
from tests.services.processes import HOST
from tests.services.spark_connect import ConnectServer

_RECORD = """
    SELECT 1 FROM task_state_store
    WHERE dag_id = %s AND run_id = %s AND key = 'spark_connect_operation'
"""


@dataclass(frozen=True)
class Server:
    """A Spark Connect server that no other task uses, and the port of its pages."""

    connect: ConnectServer
    page: int

    def jobs(self) -> list[str]:
        """The jobs that run; raises ``OSError`` while no server answers."""
        at = f"http://{HOST}:{self.page}/api/v1/applications"
        (found,) = _json(at)
        jobs = _json(f"{at}/{found['id']}/jobs?status=running")
        return [f"job {each['jobId']}" for each in jobs]


def _json(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)
        return found


class ConnectTask(AirflowTask):
    """One run; its phases are those of ``matrix.OVER_CONNECT``."""

    dags = "killed_connect"
    milliseconds = 1000
    seconds_to_commit = 0.05
    pause = 0.02

    def __init__(
        self,
        airflow: Airflow,
        server: Server,
        database: Postgres,
        folder: Path,
        verb: str,
        number: int,
        slowly: bool = False,
    ) -> None:
        self.server = server
        self._left: set[Path] = set()  # folders of jobs that have ended with their server
        super().__init__(airflow, database, folder, verb, number, slowly)

    def phases(self) -> dict[str, Callable[[], object]]:
        """How each phase shows, in their order."""
        return {
            "before": lambda: "connected to Spark" in self.log(),
            "begins": self._has_record,
            "runs": lambda: self.is_writing() and self._follows(),
            "commits": lambda: self.has_written() and self._follows(),
            "ended": lambda: self.has_new_files() and not self._folders(),
        }

    def _folders(self) -> list[Path]:
        """The folders in which Spark writes: the one for all jobs, or those for one partition."""
        found = {*self.folder.glob("_temporary"), *self.folder.glob(".spark-staging-*")}
        return sorted(found - self._left)

    def is_writing(self) -> bool:
        """Whether a task of Spark writes a file of the table."""
        writes = (any(each.rglob("attempt_*")) for each in self._folders())
        return any(writes) or self.has_written()

    def has_written(self) -> bool:
        """Whether it has written, so that its job moves the files into place now."""
        return any(any(each.rglob("task_*")) for each in self._folders()) or self.has_new_files()

    def end_server(self, how: Signals) -> None:
        """Ends the server, and starts it again as a supervisor does."""
        self.server.connect.kill(how)
        self._left = set(self.folder.glob(".spark-staging-*"))
        self.server.connect.start()

    def _follows(self) -> bool:
        """Whether the last try has begun the statement, or waits for the one of a try before it."""
        log = self.last_log()
        return any(words in log for words in ("connected to Spark", "waits until it has ended"))

    def _has_record(self) -> bool:
        return self._look(_RECORD) is not None

    def hold(self) -> None:
        """Holds the server."""
        self.server.connect.send(SIGSTOP)

    def go_on(self) -> None:
        """Lets the server go on, if it was held."""
        self.server.connect.send(SIGCONT)

    def running(self) -> list[str]:
        """What of the run still runs on the server."""
        return self.server.jobs()


class DeferredConnectTask(ConnectTask):
    """A deferred run; its phases are those of ``matrix.DEFERRED``."""

    dags = "killed_deferred"
    milliseconds = 2500  # the worker waits for 5 s itself
    deferred_after = "waits"

    def phases(self) -> dict[str, Callable[[], object]]:
        """How each phase shows, in their order."""
        found = super().phases()
        waits = {"waits": lambda: self.state() == "deferred"}
        after = {name: found.pop(name) for name in ("commits", "ended")}
        return {**found, **waits, **after}
