"""A YARN cluster on loopback: a resource manager and a node manager, with files on the local disk.

The resource manager has the queues ``default`` and ``daily``. The classes are Hadoop's own servers,
from the jar of its mini cluster, with PySpark's Hadoop.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM
from typing import Any

import psutil
import pyspark

from airflow_hive_opt.spark.session.java import ensure_java
from tests.services.jars import jars
from tests.services.java_options import WITHOUT_ARCHIVE
from tests.services.metastore import site_xml
from tests.services.processes import HOST, free_port, server

QUEUES = ("default", "daily")
_SERVER = "org.apache.hadoop.yarn.server"
_OPENED = tuple(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in ("lang", "util"))
_JARS = Path(pyspark.__file__).parent / "jars"
# Milliseconds without a sign of life. A busy machine needs the longer one to start a driver.
_NODE_IS_LOST_AFTER, _DRIVER_IS_LOST_AFTER = 15_000, 120_000


@dataclass(frozen=True)
class Yarn:
    """A running cluster. Its clients read ``conf``, the folder of its configuration."""

    address: str
    conf: Path
    _start_node: Callable[[], subprocess.Popen[bytes]]
    _nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def node(self) -> subprocess.Popen[bytes]:
        """The node manager."""
        return self._nodes[-1]

    def start_node(self) -> None:
        """Starts a node manager, in place of one that was killed."""
        self._nodes.append(self._start_node())

    def kill_node(self) -> None:
        """Kills the node manager and what it has started, as the end of its machine does."""
        containers = psutil.Process(self.node.pid).children(recursive=True)
        self.node.kill()
        for process in containers:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.node.wait()

    def applications(self) -> list[dict[str, Any]]:
        """What the resource manager says of each application, the newest first."""
        found = self._asked("/ws/v1/cluster/apps")["apps"] or {"app": []}
        return sorted(found["app"], key=lambda each: each["startedTime"], reverse=True)

    def application(self, id_: str) -> dict[str, Any]:
        """What the resource manager says of one application."""
        found: dict[str, Any] = self._asked(f"/ws/v1/cluster/apps/{id_}")["app"]
        return found

    def kill(self, id_: str) -> None:
        """Kills an application as the button of the resource manager's page does."""
        request = urllib.request.Request(
            f"{self.address}/ws/v1/cluster/apps/{id_}/state?user.name=root",
            data=b'{"state": "KILLED"}',
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=10).close()

    def has_node(self, since: float) -> bool:
        """Whether a node manager has said that it runs after ``since``, in seconds."""
        found = self._asked("/ws/v1/cluster/nodes")["nodes"] or {"node": []}
        return any(
            each["state"] == "RUNNING" and each["lastHealthUpdate"] > 1000 * since
            for each in found["node"]
        )

    def answers(self) -> bool:
        """Whether the resource manager answers."""
        try:
            self.applications()
        except OSError:
            return False
        return True

    def spark_conf(self) -> dict[str, str]:
        """Spark's settings with which small applications run here without an upload of Spark."""
        return {
            "spark.yarn.jars": f"local:{_JARS}/*",
            "spark.yarn.stagingDir": str(self.conf.parent / "staging"),
            "spark.yarn.am.memory": "512m",
            "spark.driver.memory": "640m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
        }

    def _asked(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}{path}", timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """A cluster until the block ends; raises :class:`~tests.services.processes.ServiceError`."""
    ensure_java()
    conf, page = folder / "conf", free_port()
    conf.mkdir(parents=True)
    address = f"http://{HOST}:{page}"
    for name, settings in _configuration(folder, page).items():
        (conf / name).write_text(site_xml({key: str(value) for key, value in settings.items()}))
    with ExitStack() as stack:

        def start(name: str, is_ready: Callable[[], bool]) -> subprocess.Popen[bytes]:
            classes = os.pathsep.join([str(conf), *map(str, jars("yarn")), f"{_JARS}/*"])
            kind = f"{_SERVER}.{name.lower()}.{name}"
            command = ["java", "-Xmx384m", *WITHOUT_ARCHIVE.split(), *_OPENED, "-cp", classes, kind]
            log = folder / f"{name}.log"
            environment = {**os.environ, "HADOOP_CONF_DIR": str(conf)}
            return stack.enter_context(
                server(command, log, is_ready, stop_with=SIGTERM, env=environment)
            )

        def start_node() -> subprocess.Popen[bytes]:
            since = time.time()
            return start("NodeManager", lambda: running.has_node(since))

        running = Yarn(address, conf, start_node)
        start("ResourceManager", running.answers)
        running.start_node()
        yield running


def _configuration(folder: Path, page: int) -> dict[str, dict[str, object]]:
    manager, node, scheduler = "yarn.resourcemanager", "yarn.nodemanager", "yarn.scheduler.capacity"
    ports = (
        *(f"{manager}.{name}address" for name in ("", "scheduler.", "resource-tracker.", "admin.")),
        *(f"{node}.{name}address" for name in ("", "localizer.", "webapp.")),
    )
    return {
        "core-site.xml": {"fs.defaultFS": "file:///", "hadoop.tmp.dir": folder / "tmp"},
        "yarn-site.xml": {
            **{name: f"{HOST}:{free_port()}" for name in ports},
            f"{manager}.hostname": HOST,
            f"{manager}.webapp.address": f"{HOST}:{page}",
            f"{node}.hostname": HOST,
            f"{node}.local-dirs": folder / "local",
            f"{node}.log-dirs": folder / "logs",
            f"{node}.resource.memory-mb": 8_192,
            f"{node}.resource.cpu-vcores": 8,
            f"{node}.pmem-check-enabled": "false",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
            f"{node}.env-whitelist": "JAVA_HOME",
            "yarn.scheduler.minimum-allocation-mb": 128,
            "yarn.nm.liveness-monitor.expiry-interval-ms": _NODE_IS_LOST_AFTER,
            "yarn.am.liveness-monitor.expiry-interval-ms": _DRIVER_IS_LOST_AFTER,
            f"{manager}.nodemanagers.heartbeat-interval-ms": 200,
        },
        "capacity-scheduler.xml": {
            f"{scheduler}.root.queues": ",".join(QUEUES),
            **{f"{scheduler}.root.{queue}.capacity": 100 // len(QUEUES) for queue in QUEUES},
            **{f"{scheduler}.root.{queue}.maximum-capacity": 100 for queue in QUEUES},
            f"{scheduler}.maximum-am-resource-percent": 1.0,
        },
    }
