"""The folder in which the tasks of one user and one shared Spark find each other.

It has the address of Spark's gateway, and a numbered file for each task that may use this Spark at
the same time. Whoever uses a file holds its lock. The kernel releases the lock when the process
ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import IO

from upath import UPath

from airflow_hive_opt.documents.storage import write_atomically
from airflow_hive_opt.spark.session.file_locks import open_private, try_lock, wait_for_lock
from airflow_hive_opt.spark.session.java import SparkStartError
from airflow_hive_opt.spark.session.shared_settings import Bounds, digest_of

FOLDER_VARIABLE = "AIRFLOW_HIVE_OPT_SESSIONS"
_PATIENCE_TO_END = 60  # seconds
_OLD = 7 * 24 * 3600  # seconds
_NAME = re.compile(r"[0-9a-f]{16}")  # of a folder; others may have folders beside them
_ABANDONED = "abandoned-"
_TRIES, _BETWEEN_TRIES = 20, 0.1


@dataclass(frozen=True)
class Address:
    """Where the gateway of a shared Spark listens; ``token`` is its secret."""

    port: int
    token: str


def sessions_root() -> Path:
    """The folder of all shared Sparks: ``$AIRFLOW_HIVE_OPT_SESSIONS``, else in the home folder."""
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

        Tasks share a Spark only if all that it takes when it starts is equal; see
        :mod:`~airflow_hive_opt.spark.session.shared_settings`.
        Raises ``SparkStartError`` if another user could read the folder.
        """
        found = cls(sessions_root() / digest_of(conf, bounds)[:16])
        found._create()
        return found

    @classmethod
    def all(cls) -> list[SharedFolder]:
        """The folders of this user, whether their Spark runs or not."""
        root = sessions_root()
        found = sorted(root.iterdir()) if root.is_dir() else []
        return [cls(each) for each in found if _NAME.fullmatch(each.name) and _is_own(each)]

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
    def locked(self, stopped: threading.Event) -> Iterator[None]:
        """In the block, no other task starts this Spark, ends it when idle, or begins to use it.

        Raises ``SparkStartError`` if ``stopped`` is set while this process waits for its turn.
        """
        while True:
            self._create()  # another process may have removed the folder, because it was old
            try:
                file = self._file("lock")
            except FileNotFoundError:
                continue
            with file:
                wait_for_lock(file, stopped)
                if self._is_in_place(file):
                    yield
                    return

    def _is_in_place(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), (self.folder / "lock").stat())
        except FileNotFoundError:
            return False

    def hold(self) -> IO[str] | None:
        """A locked file, which marks this process as the Spark; ``None`` if another one is it."""
        file = self._file("alive")
        for _ in range(_TRIES):  # a process that asks has the lock for a moment
            if try_lock(file):
                file.truncate()
                json.dump({"pid": os.getpid(), "machine": this_machine()}, file)
                file.flush()
                return file
            time.sleep(_BETWEEN_TRIES)
        file.close()
        return None

    def is_alive(self) -> bool:
        """Whether the Spark runs, starts or ends."""
        try:
            with self._file("alive") as file:
                return not try_lock(file, fcntl.LOCK_SH)
        except FileNotFoundError:  # the folder has been removed, because it was old
            return False

    def pid(self) -> int | None:
        """The process of the Spark; ``None`` if there is none on this machine.

        Several machines or containers may see the folder, and the number is valid on one only.
        """
        if not self.is_alive():
            return None
        try:
            holder = json.loads((self.folder / "alive").read_text())
            return int(holder["pid"]) if holder["machine"] == this_machine() else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def address(self) -> Address | None:
        """Where the gateway listens; ``None`` before Spark has started."""
        try:
            return Address(**json.loads(self._address.read_text()))
        except (FileNotFoundError, ValueError, TypeError):  # of another version of this package
            return None

    def publish(self, address: Address | None) -> None:
        """Stores the address, or removes it."""
        if address is None:
            self._address.unlink(missing_ok=True)
            return
        write_atomically(json.dumps(asdict(address)).encode(), UPath(self._address))

    @contextmanager
    def locked_at_once(self) -> Iterator[bool]:
        """Like :meth:`locked`, but does not wait; says whether the lock was free."""
        with self._file("lock") as file:
            yield try_lock(file)

    def claim(self, most: int, tag: str) -> IO[str] | None:
        """A locked file with ``tag`` in it; ``None`` if ``most`` files are in use."""
        for number in range(most):
            file = self._file(f"task-{number}")
            if try_lock(file):
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
                if try_lock(file, fcntl.LOCK_SH) and (tag := file.read()):
                    tags.append(tag)
                    file.seek(0)
                    file.truncate()
        return tags

    def stop(self) -> bool:
        """Ends this Spark if it is ready and no task uses it; returns whether none runs any more.

        Removes the folder if it is old.
        """
        try:
            with self.locked_at_once() as locked:
                if not locked:
                    return False  # a task is starting it
                pid = self.pid()
                if pid is not None and self.address() is not None and not self.tasks():
                    self._signal(pid, signal.SIGTERM)
                stopped = not self.is_alive()
                if stopped and time.time() - self.last_used() > _OLD:
                    shutil.rmtree(self.folder, ignore_errors=True)
                return stopped
        except FileNotFoundError:  # another process has removed the folder
            return True

    def kill(self) -> bool:
        """Ends this Spark although tasks use it or wait for it; returns whether none runs."""
        pid = self.pid()
        if pid is not None and self.address() is not None:
            self._signal(pid, signal.SIGTERM)
        if pid is not None and self.is_alive():  # it hangs, or it starts and takes no signal
            self._signal(pid, signal.SIGKILL)
        return not self.is_alive()

    def _signal(self, pid: int, kind: signal.Signals) -> None:
        """Sends a signal to the process, and waits until it has ended.

        SIGKILL goes to its JVM too, which may hang; otherwise the JVM ends with the process.
        """
        until = time.monotonic() + _PATIENCE_TO_END
        with suppress(ProcessLookupError):
            (os.killpg if kind is signal.SIGKILL else os.kill)(pid, kind)
        while self.is_alive() and time.monotonic() < until:
            time.sleep(0.1)

    def last_used(self) -> float:
        """When a task last began or ended, in seconds since 1970."""
        places = [path.stat().st_mtime for path in self.folder.glob("task-*")]
        return max(places, default=self.folder.stat().st_mtime)

    def tasks(self) -> int:
        """How many tasks use this Spark now."""
        count = 0
        for path in self.folder.glob("task-*"):
            with self._file(path.name) as file:
                count += not try_lock(file, fcntl.LOCK_SH)
        return count

    def _file(self, name: str) -> IO[str]:
        return open_private(self.folder / name)


@contextmanager
def starting(stopped: threading.Event) -> Iterator[None]:
    """No other process of this user starts a shared Spark until the block ends.

    Raises ``SparkStartError`` if ``stopped`` is set while this process waits for its turn.
    """
    with open_private(sessions_root() / f"starting-{os.getuid()}") as file:
        wait_for_lock(file, stopped)
        yield


def _is_own(folder: Path) -> bool:
    try:
        status = folder.stat()
    except FileNotFoundError:  # another process has removed it, because it was old
        return False
    return S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def this_machine() -> str:
    """A name of this machine, or of this container, since its start."""
    spaces = Path("/proc/self/ns/pid")
    space = str(spaces.readlink()) if spaces.is_symlink() else ""
    return f"{platform.node()} {space}"
