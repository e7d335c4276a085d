"""A task that Airflow runs, and the table that it writes."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Any
from urllib.error import URLError
from urllib.parse import quote

import psutil

from airflow_hive_opt.provider.attempts import safe_part
from tests.kills.make_tables import statement
from tests.services.airflow import Airflow, triggerer_of
from tests.services.postgres import Postgres

TASK = "write"
ENDS = ("success", "failed")
_RUN = "SELECT state FROM dag_run WHERE dag_id = %s AND run_id = %s"
_INSTANCE = "SELECT state, pid, try_number FROM task_instance WHERE dag_id = %s AND run_id = %s"
_TRIGGERER = """
    SELECT triggerer_id FROM trigger JOIN task_instance ON trigger_id = trigger.id
    WHERE dag_id = %s AND run_id = %s
"""
_SLOWLY = 12_000  # milliseconds for each row
# The ID of the job that has written a file.
_JOB = re.compile(r"part-(?:[0-9a-f]{16}-)?\d+-([0-9a-f-]{36})")


def name_of(number: int) -> str:
    """The pool of one of the tasks that run at once, and its queue, which has a triggerer."""
    return f"task{number}"


class AirflowTask:
    """A run of a DAG, whose statement writes the table in ``folder``.

    ``number`` is its own among those that run at once. ``slowly`` says that a triggerer can start
    while the statement writes.
    ``wrote`` are the IDs of Spark's jobs whose files have been seen in the partition's folder.
    Airflow's states are read from its database: asking the API server as often would keep it busy.
    """

    dags: str  # the DAG of each task that runs at once has this name, and the task's number
    milliseconds: int  # for each row that the statement writes
    seconds_to_commit: float  # about as long as a commit takes
    pause: float  # seconds between two looks for a phase
    deferred_after: str | None = None  # the phase at whose end the task is deferred, if it is

    def __init__(
        self,
        airflow: Airflow,
        database: Postgres,
        folder: Path,
        verb: str,
        number: int,
        slowly: bool = False,
    ) -> None:
        self.airflow, self.folder = airflow, folder
        self.dag_id, self.pool = f"{self.dags}_{number}", name_of(number)
        self._database = database.connect("airflow")
        self._partition = folder / "a=x" / "b=1"
        self._before = self._jobs()
        self._ended_triggerers: set[int | None] = {None}
        self._ended_processes: set[int] = set()
        self.wrote: set[str] = set()
        milliseconds = _SLOWLY if slowly else self.milliseconds
        sql = statement(verb, folder.name, milliseconds)
        self.id = airflow.trigger(self.dag_id, sql=sql)
        self._at = f"/api/v2/dags/{self.dag_id}/dagRuns/{quote(self.id)}"

    def _jobs(self) -> set[str]:
        names = [found.name for found in self._partition.glob("part-*")]
        return {found[1] for name in names if (found := _JOB.match(name))}

    def until(self, true: Callable[[], object], seconds: float, pause: float = 0.1) -> bool:
        """Looks again after each ``pause``, and says whether it has become true in time.

        A server that does not answer, because it was killed, is asked again.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError):  # Spark has just moved it
                self.wrote |= self._jobs() - self._before
            with suppress(URLError, OSError):
                if true():
                    return True
            time.sleep(pause)
        return False

    def _look(self, query: str) -> Any:
        """The first row that a query finds for the run, or ``None``."""
        return self._database.execute(query, [self.dag_id, self.id]).fetchone()

    def _triggerer(self) -> int | None:
        """The ID of the triggerer that follows the task."""
        found = self._look(_TRIGGERER)
        return found and found[0]

    def is_followed(self) -> bool:
        """Whether a triggerer follows it that this object has not ended."""
        return self._triggerer() not in self._ended_triggerers

    def end_triggerer(self, how: Signals) -> None:
        """Ends its triggerer, and starts it again as a supervisor does."""
        self._ended_triggerers.add(self._triggerer())
        self.airflow.kill(triggerer_of(self.pool), how)
        self.airflow.start(triggerer_of(self.pool))

    def start_triggerer(self) -> bool:
        """Starts its triggerer if that has ended by itself; whether it had."""
        return self.airflow.start_if_ended(triggerer_of(self.pool))

    def close(self) -> None:
        """Closes the connection to Airflow's database."""
        self._database.close()

    def state(self) -> str | None:
        """The state of the task."""
        found: str | None = self._look(_INSTANCE)[0]
        return found

    def run_state(self) -> str:
        """The state of the DAG run."""
        return str(self._look(_RUN)[0])

    def log(self, number: int = 1) -> str:
        """The times and the texts of the log of a try."""
        folder = self.airflow.logs / f"dag_id={self.dag_id}" / f"run_id={self.id}"
        files = sorted(folder.glob(f"task_id={TASK}/attempt={number}.log*"))
        text = "\n".join(file.read_text(errors="replace") for file in files)
        found = re.findall(r'"timestamp":"([^"]*)".*?"event":"((?:[^"\\]|\\.)*)"', text)
        return "\n".join(" ".join(parts) for parts in found)

    def last_log(self) -> str:
        """The log of the last try."""
        return self.log(self._look(_INSTANCE)[2])

    def left_files(self) -> Path | None:
        """The folder that the last try tells the user to delete."""
        found = re.search(r"file:(\S+/_temporary/0) has files", self.last_log())
        return Path(found[1]) if found else None

    @property
    def attempts(self) -> Path:
        """The folder in which the attempts write."""
        parts = (safe_part(self.dag_id), safe_part(self.id), TASK, "-1")
        return self.airflow.descriptors.joinpath(*parts)

    def fail_by_user(self) -> None:
        """Marks the task as failed."""
        body = {"new_state": "failed"}
        self.airflow.ask(f"{self._at}/taskInstances/{TASK}", body, method="PATCH")

    def clear_by_user(self) -> None:
        """Clears the task."""
        body = {"dry_run": False, "dag_run_id": self.id, "task_ids": [TASK], "only_failed": False}
        self.airflow.ask(f"/api/v2/dags/{self.dag_id}/clearTaskInstances", body)

    def find_process(self) -> psutil.Process:
        """The process of the task, which runs already or is about to start.

        Airflow takes a task for running until it notices that its process has ended. Raises
        ``psutil.NoSuchProcess`` if the run has ended.
        """

        def starts() -> bool:
            if self.run_state() in ENDS:
                raise psutil.NoSuchProcess(0, "the task")
            state, pid, _ = self._look(_INSTANCE)
            is_there = state == "running" and pid and pid not in self._ended_processes
            pids[:] = [pid] if is_there else []
            return bool(pids)

        pids: list[int] = []
        assert self.until(starts, 600, self.pause), "the task does not start"
        return psutil.Process(pids[0])

    def end_process(self, process: psutil.Process, how: Signals, with_supervisor: bool) -> None:
        """Ends the process of the task, or the one that supervises it.

        SIGKILL ends the supervisor and the task's group of processes, as the end of a machine does.
        SIGTERM goes to the supervisor alone, as when a worker is stopped.
        """
        self._ended_processes.add(process.pid)
        if not with_supervisor:
            process.send_signal(how)
            return
        process.parent().send_signal(how)
        if how == SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, SIGKILL)

    def phases(self) -> dict[str, Callable[[], object]]:
        """How each phase shows, in their order."""
        raise NotImplementedError

    def running(self) -> list[str]:
        """What of the run still runs outside of Airflow."""
        raise NotImplementedError

    def resumes(self) -> bool:
        """Whether a deferred task has a process again, which reads the outcome."""
        return self.state() == "running" and bool(self.phases()["ended"]())

    def slots(self) -> int:
        """The slots that the waiting task holds: it is the only task of its pool."""
        pool: dict[str, Any] = self.airflow.ask(f"/api/v2/pools/{self.pool}")
        return int(pool["occupied_slots"])

    def hold(self) -> None:
        """Holds the process that commits, if a commit is too short to end anything during it."""

    def go_on(self) -> None:
        """Lets it go on."""

    # Where the phases show that all kinds have.

    def is_writing(self) -> bool:
        """Whether a task of Spark writes a file of the table."""
        return any(self.folder.rglob("_temporary/attempt_*")) or self.has_written()

    def has_written(self) -> bool:
        """Whether it has written, so that its job moves the files into place now."""
        return any(self.folder.rglob("task_*")) or self.has_new_files()

    def has_new_files(self) -> bool:
        """Whether the partition has files of a job of the run."""
        return bool(self._jobs() - self._before)
