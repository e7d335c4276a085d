"""A deferred task whose driver runs on a standalone cluster that no other task uses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from signal import Signals

import psutil

from tests.kills.airflow_task import TASK, AirflowTask
from tests.services.airflow import Airflow
from tests.services.postgres import Postgres
from tests.services.standalone import Standalone

_ENDED = {"FINISHED", "FAILED", "KILLED", "ERROR"}


class ClusterTask(AirflowTask):
    """One run; its phases are those of ``matrix.ON_CLUSTER``."""

    dags = "killed_cluster"
    milliseconds = 1500
    seconds_to_commit = 0.3
    pause = 0.1  # a look at all processes takes time
    deferred_after = "submitted"

    def __init__(
        self,
        airflow: Airflow,
        cluster: Standalone,
        database: Postgres,
        folder: Path,
        verb: str,
        number: int,
        slowly: bool = False,
    ) -> None:
        self._cluster = cluster
        self._old = set(self._all_drivers())
        super().__init__(airflow, database, folder, verb, number, slowly)

    def _all_drivers(self) -> dict[str, str]:
        state = self._cluster.state()
        found = [*state["activedrivers"], *state["completeddrivers"]]
        return {each["id"]: each["state"] for each in found}

    @property
    def drivers(self) -> dict[str, str]:
        """The states of the run's drivers, by ID."""
        return {id_: how for id_, how in self._all_drivers().items() if id_ not in self._old}

    def _process(self) -> psutil.Process | None:
        """The driver's JVM."""
        name = f"{self.dag_id}.{TASK} {self.id}"
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or ()
            if "org.apache.spark.deploy.worker.DriverWrapper" in words and any(
                name in word for word in words
            ):
                return process
        return None

    def phases(self) -> dict[str, Callable[[], object]]:
        """How each phase shows, in their order."""
        folder = self.attempts
        return {
            "before": (folder / "1.job.json").exists,
            "submitted": lambda: self.drivers,
            "starts": lambda: self._process() and self.state() == "deferred",
            "runs": self.is_writing,
            "commits": self.has_written,
            "ended": self._is_done,
        }

    def _is_done(self) -> bool:
        """Whether a driver is done. One that was killed may report an error."""
        files = self.attempts.glob("*.outcome.json")
        return any('"status": "done"' in file.read_text() for file in files)

    def end_driver(self, how: Signals) -> None:
        """Ends the JVM of the driver."""
        process = self._process()
        if process is None:
            raise psutil.NoSuchProcess(0, "the driver")
        process.send_signal(how)

    def running(self) -> list[str]:
        """What of the run still runs on the cluster."""
        drivers = [id_ for id_, state in self.drivers.items() if state not in _ENDED]
        applications = [each["id"] for each in self._cluster.state()["activeapps"]]
        process = self._process()
        return [*drivers, *applications, *([f"process {process.pid}"] if process else [])]
