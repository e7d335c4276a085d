"""Locks on files, and waiting for them; the kernel releases a lock when its process ends."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import IO

from airflow_hive_opt.spark.session.java import SparkStartError

_BETWEEN_TRIES = 0.1


def open_private(path: Path) -> IO[str]:
    """The file, opened for reading and writing; only its owner may open it."""
    return open(path, "r+", opener=_create_private)


def try_lock(file: IO[str], kind: int = fcntl.LOCK_EX) -> bool:
    """Locks the file unless another process holds it; a mere check takes a shared lock."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(file: IO[str], stopped: threading.Event) -> None:
    """Locks the file; raises ``SparkStartError`` if ``stopped`` is set before it is free."""
    while not try_lock(file):
        wait_or_stop(_BETWEEN_TRIES, stopped)


def wait_or_stop(seconds: float, stopped: threading.Event) -> None:
    """Waits; raises ``SparkStartError`` if ``stopped`` is set before the time is over."""
    if stopped.wait(seconds):
        raise SparkStartError("the task was stopped while it waited for the shared Spark")


def _create_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o600)
