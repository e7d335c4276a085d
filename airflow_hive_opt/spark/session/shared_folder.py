"""The folder in which the tasks of one user and one shared Spark find each other.

It has the address of Spark's gateway, and a numbered file for each task that may use this Spark at
the same time. Whoever uses a file holds its lock. The kernel releases the lock when the process
ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO

from airflow_hive_opt.spark.session.java import SparkStartError

FOLDER_VARIABLE = "AIRFLOW_HIVE_OPT_SESSIONS"
_PATIENCE_TO_END = 60  # seconds
_ABANDONED = "abandoned-"
_TRIES, _BETWEEN_TRIES = 20, 0.1
# Variables that Spark, Hadoop and the clients of storages read.
_ENVIRONMENT = (
    *("AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "HIVE_", "JAVA_", "JDK_", "KRB5", "LANG", "LC_"),
    *("PYSPARK_", "PYTHONPATH", "SPARK_", "TZ", "YARN_", "_JAVA_"),
)
# Variables that PySpark itself sets when it has connected.
_OF_PYSPARK = ("PYSPARK_PYTHON", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
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


@dataclass(frozen=True)
class Address:
    """The gateway of a shared Spark; ``token`` is its secret.

    ``pid`` is valid on ``machine`` only: several machines or containers may see the folder.
    """

    pid: int
    machine: str
    port: int
    token: str


def of_a_session(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that a session may change."""
    return {name: value for name, value in conf.items() if name.startswith(_OF_A_SESSION)}


def of_the_whole(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that Spark takes when it starts."""
    return {name: value for name, value in conf.items() if not name.startswith(_OF_A_SESSION)}


def sessions_root() -> Path:
    """``$AIRFLOW_HIVE_OPT_SESSIONS``, or a folder in the user's home."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path.home() / ".airflow-hive-opt" / "sessions"


class SharedFolder:
    """One shared Spark's folder; no other user can open it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "spark.log"
        self.failure = folder / "failure.json"
        self._address = folder / "address.json"

    @classmethod
    def of(cls, conf: Mapping[str, str], bounds: Bounds) -> SharedFolder:
        """The folder for these settings.

        Tasks share a Spark only if all that it takes when it starts is equal: settings, bounds,
        versions, the current folder, and the variables of the environment that it reads.
        Raises ``SparkStartError`` if another user could read the folder.
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
        )
        digest = hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()
        found = cls(sessions_root() / digest[:16])
        found._create()
        return found

    @classmethod
    def all(cls) -> list[SharedFolder]:
        """The folders of this user, whether their Spark runs or not."""
        root = sessions_root()
        found = sorted(root.iterdir()) if root.is_dir() else []
        return [cls(each) for each in found if each.is_dir() and each.stat().st_uid == os.getuid()]

    def _create(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.folder.stat()
        except OSError as error:
            raise SparkStartError(f"the folder of the shared Spark: {error}") from None
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise SparkStartError(
                f"{self.folder} belongs to another user or others may open it, so a shared Spark "
                f"is not started there: remove the folder, or set {FOLDER_VARIABLE} to another one"
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other process starts or ends this Spark, or begins to use it, until the block ends."""
        with self._file("lock") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def hold(self) -> IO[str] | None:
        """A file that stays locked while this process is the Spark; ``None`` if another one is."""
        file = self._file("alive")
        for _ in range(_TRIES):  # a process that asks has the lock for a moment
            if _try_lock(file):
                return file
            time.sleep(_BETWEEN_TRIES)
        file.close()
        return None

    def is_alive(self) -> bool:
        """Whether the Spark runs, starts or ends."""
        with self._file("alive") as file:
            return not _try_lock(file, fcntl.LOCK_SH)

    def address(self) -> Address | None:
        """Where the gateway listens; ``None`` before Spark has started."""
        try:
            return Address(**json.loads(self._address.read_text()))
        except (FileNotFoundError, ValueError):
            return None

    def publish(self, address: Address | None) -> None:
        """Stores the address, or removes it."""
        if address is None:
            self._address.unlink(missing_ok=True)
            return
        unfinished = self._address.with_suffix(".tmp")
        with self._file(unfinished.name) as file:
            file.truncate()
            json.dump(address.__dict__, file)
        unfinished.replace(self._address)

    @contextmanager
    def locked_at_once(self) -> Iterator[bool]:
        """Like :meth:`locked`, but does not wait; says whether the lock was free."""
        with self._file("lock") as file:
            yield _try_lock(file)

    def claim(self, most: int, tag: str) -> IO[str] | None:
        """A locked file with ``tag`` in it; ``None`` if ``most`` files are in use."""
        for number in range(most):
            file = self._file(f"task-{number}")
            if _try_lock(file):
                if before := file.read():  # of a killed task that the Spark has not seen yet
                    (self.folder / f"{_ABANDONED}{before}").touch()
                file.seek(0)
                file.truncate()
                file.write(tag)
                file.flush()
                return file
            file.close()
        return None

    def release(self, file: IO[str]) -> None:
        """Gives back a file of :meth:`claim`."""
        with file:
            file.seek(0)
            file.truncate()

    def abandoned(self) -> list[str]:
        """The tags of tasks that have ended without giving back their file, each once."""
        tags = []
        for path in self.folder.glob(f"{_ABANDONED}*"):
            tags.append(path.name.removeprefix(_ABANDONED))
            path.unlink()
        for path in self.folder.glob("task-*"):
            with self._file(path.name) as file:
                if _try_lock(file, fcntl.LOCK_SH) and (tag := file.read()):
                    tags.append(tag)
                    file.seek(0)
                    file.truncate()
        return tags

    def stop(self, in_use: bool = False) -> bool:
        """Ends this Spark if no task uses it, or in any case if ``in_use`` is set.

        Returns whether none runs any more.
        """
        with self.locked_at_once() as locked:
            if not locked:
                return False  # a task is starting it
            address = self.address()
            here = address is not None and address.machine == this_machine()
            if not here or address is None or (self.tasks() and not in_use):
                return not self.is_alive()
            until = time.monotonic() + _PATIENCE_TO_END
            if self.is_alive():
                os.kill(address.pid, signal.SIGTERM)
            while self.is_alive() and time.monotonic() < until:
                time.sleep(0.1)
            return not self.is_alive()

    def tasks(self) -> int:
        """How many tasks use this Spark now."""
        count = 0
        for path in self.folder.glob("task-*"):
            with self._file(path.name) as file:
                count += not _try_lock(file, fcntl.LOCK_SH)
        return count

    def _file(self, name: str) -> IO[str]:
        """The file, opened for reading and writing; only its owner may open it."""
        return open(self.folder / name, "r+", opener=_create_private)


def this_machine() -> str:
    """A name of this machine, or of this container, since its start."""
    spaces = Path("/proc/self/ns/pid")
    space = str(spaces.readlink()) if spaces.is_symlink() else ""
    return f"{platform.node()} {space}"


def _create_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)


def _try_lock(file: IO[str], kind: int = fcntl.LOCK_EX) -> bool:
    """Locks the file unless another process uses it; those that only ask take a shared lock."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
