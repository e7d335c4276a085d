"""Airflow as ``docker/compose.yaml`` runs it: its commands and environment, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any, TypeVar
from urllib.parse import quote

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services import compose
from tests.services.java_options import SHORT_LIVED
from tests.services.metastore import MetastoreService
from tests.services.postgres import Postgres
from tests.services.processes import HOST, ServiceError, end, free_port, server
from tests.services.standalone import Standalone

T = TypeVar("T")
USER = "admin"
_PARTS = {
    "airflow-api-server": "metadatabase",
    "airflow-dag-processor": "dag_processor",
    "airflow-triggerer": "triggerer",
    "airflow-scheduler": "scheduler",
}


@dataclass(frozen=True)
class Airflow:
    """A running set; ``descriptors`` and ``logs`` are where its tasks write."""

    address: str
    folder: Path
    _start: Callable[[str], subprocess.Popen[bytes]] = field(repr=False)
    _running: dict[str, subprocess.Popen[bytes]] = field(repr=False)
    password: str = field(repr=False)

    @property
    def descriptors(self) -> Path:
        """The default of ``[hive_opt] descriptor_path``."""
        return self.folder / "airflow" / "hive_opt_descriptors"

    @property
    def logs(self) -> Path:
        """The tasks' logs."""
        return self.folder / "airflow" / "logs"

    @cached_property
    def token(self) -> str:
        """The user's bearer token."""
        login = {"username": USER, "password": self.password}
        return str(self._ask("/auth/token", {}, login)["access_token"])

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """The API server's answer to a GET, or to a POST with ``body``, as JSON or text.

        ``method`` is another one than these. Raises ``urllib.error.HTTPError``.
        """
        return self._ask(path, {"Authorization": f"Bearer {self.token}"}, body, method)

    def _ask(self, path: str, headers: dict[str, str], body: Any, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {**headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
        return json.loads(text) if text.startswith(("{", "[")) else text

    def trigger(self, dag_id: str, **conf: Any) -> str:
        """Starts a run that has no logical date; returns its id."""
        body = {"logical_date": None, "conf": conf}
        return str(self.ask(f"/api/v2/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def runs(self, dag_id: str, kind: str) -> list[dict[str, Any]]:
        """The runs of one type, such as ``backfill``."""
        found = self.ask(f"/api/v2/dags/{dag_id}/dagRuns?limit=100&run_type={kind}")
        runs: list[dict[str, Any]] = found["dag_runs"]
        return runs

    def ended(self, dag_id: str, run_id: str, seconds: float = 240) -> str:
        """Waits for the end of a run; returns its state, and prints the logs of a failed one."""

        def state() -> str | None:
            found = self.ask(f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}")["state"]
            return found if found in ("success", "failed") else None

        if (found := wait_for(state, seconds)) == "failed":
            for log in sorted(self.logs.glob(f"dag_id={dag_id}/run_id={run_id}/**/*.log")):
                print(f"{log}:\n{log.read_text(errors='replace')[-4000:]}")
            said = (self.folder / "airflow-scheduler.log").read_text(errors="replace").splitlines()
            print("scheduler:", *(line for line in said if run_id in line), sep="\n")
        return found

    def kill(self, service: str, how: Signals = SIGKILL) -> None:
        """Ends a service and its processes, by SIGKILL as the end of its machine does."""
        end(self._running[service], how)

    def start(self, service: str) -> None:
        """Starts a service that was killed."""
        self._running[service] = self._start(service)

    def start_if_ended(self, service: str) -> bool:
        """Starts a service that has ended by itself, as a supervisor does; whether it had."""
        if has_ended := self._running[service].poll() is not None:
            self.start(service)
        return has_ended

    def task(self, dag_id: str, run_id: str, task_id: str, what: str = "") -> dict[str, Any]:
        """A task instance, or ``what`` of it, such as ``/links``."""
        at = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}"
        found: dict[str, Any] = self.ask(at + what)
        return found

    def summary(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """What the task returned."""
        what = "/xcomEntries/return_value?deserialize=true"
        found: dict[str, Any] = self.task(dag_id, run_id, task_id, what)["value"]
        return found


def triggerer_of(queue: str) -> str:
    """The service that runs the triggers of one queue."""
    return f"airflow-triggerer@{queue}"


def wait_for(what: Callable[[], T | None], seconds: float = 240) -> T:
    """What ``what`` gives as soon as it is not ``None``."""
    deadline = time.monotonic() + seconds
    while (found := what()) is None:
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.5)
    return found


@contextmanager
def airflow(
    folder: Path,
    dags: Sequence[Path],
    database_server: Postgres,
    metastore_service: MetastoreService,
    cluster: Standalone,
    own: Mapping[str, str] | None = None,
    queues: Sequence[str] = (),
) -> Iterator[Airflow]:
    """The set until the block ends, with the example tables and what the ``dags`` folders hold.

    Its one user has to log in, where the containers' is an administrator already. ``own`` are
    more variables, which win. Each of the ``queues`` has a triggerer of its own, the service
    :func:`triggerer_of` it. Raises :class:`~tests.services.processes.ServiceError`.
    """
    ensure_java()
    for each in dags:
        shutil.copytree(each, folder / "dags", dirs_exist_ok=True)
    port = free_port()
    variables = {
        **database_server.variables(),
        **cluster.variables,
        "AIRFLOW_ALL_ADMINS": "False",
        "API_SERVER_HOST": HOST,
        "API_SERVER_PORT": port,
        "API_SERVER_PUBLIC": f"{HOST}:{port}",
        "DAGS_FOLDER": folder / "dags",
        "DESCRIPTORS": "",
        "HERE": compose.DOCKER,
        "METASTORE_HOST": metastore_service.host,
        "METASTORE_PORT": metastore_service.port,
    }
    environment = {
        **os.environ,
        **compose.environment("airflow-scheduler", **variables),
        "AIRFLOW_CONN_SPARK_DRIVERS": cluster.cluster_mode,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__API__HOST": HOST,
        "SPARK_CONF_DIR": str(_spark_conf(folder / "conf", metastore_service)),
        "SPARK_LOCAL_IP": HOST,
        **(own or {}),
    }
    # All services run on this machine, where the default folder is enough.
    del environment["AIRFLOW__HIVE_OPT__DESCRIPTOR_PATH"]

    def run(service: str) -> None:
        """A service that does its work and ends."""
        log = folder / f"{service}.log"
        with log.open("w") as file:
            command = compose.command(service, **variables)
            done = subprocess.run(command, stdout=file, stderr=file, env=environment, check=False)
        if done.returncode:
            raise ServiceError(f"{service} failed:\n{log.read_text()[-2000:]}")

    def well(*parts: str) -> bool:
        """The containers' own health check."""
        command = [*compose.command("metastore", HERE=compose.DOCKER)[:1]]
        command += [str(compose.DOCKER / "healthy.py"), "airflow", *parts]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        return done.returncode == 0

    database_server.create_database("airflow")
    with ThreadPoolExecutor() as both:
        list(both.map(run, ("airflow-init", "tables")))
    with ExitStack() as stack:

        def start(service: str) -> subprocess.Popen[bytes]:
            log = folder / f"{service}.log"
            name, *queue = service.split("@")
            command = compose.command(name, **variables)
            command += ["--queues", *queue] if queue else []
            # all are waited for together
            started = server(command, log, lambda: True, stop_with=SIGTERM, env=environment)
            return stack.enter_context(started)

        running = {service: start(service) for service in (*_PARTS, *map(triggerer_of, queues))}
        deadline = time.monotonic() + 240
        while not well(*_PARTS.values()):
            time.sleep(1)
            ended = [service for service, process in running.items() if process.poll() is not None]
            late = list(running) if time.monotonic() > deadline else []
            for service in ended or late:
                log = folder / f"{service}.log"
                raise ServiceError(f"{service} does not run:\n{log.read_text()[-2000:]}")
        passwords = folder / "airflow" / "simple_auth_manager_passwords.json.generated"
        password = json.loads(passwords.read_text())[USER]
        yield Airflow(f"http://{HOST}:{port}", folder, start, running, password)


def _spark_conf(folder: Path, metastore_service: MetastoreService) -> Path:
    """The image's Spark settings, with this machine's metastore and warehouse."""
    folder.mkdir()
    text = (compose.DOCKER / "spark-defaults.conf").read_text()
    for there, here in (
        ("thrift://metastore:9083", metastore_service.uri),
        ("/warehouse", str(metastore_service.warehouse)),
    ):
        assert there in text
        text = text.replace(there, here)
    for process in ("driver", "executor"):
        text += f"spark.{process}.extraJavaOptions {SHORT_LIVED}\n"
    (folder / "spark-defaults.conf").write_text(text)
    return folder
