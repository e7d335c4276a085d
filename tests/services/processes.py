"""Starts a server, waits until it answers, and ends it by its process, never by name."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from random import randint
from signal import SIGINT, SIGKILL, Signals
from typing import Any

import psutil

HOST = "127.0.0.1"


class ServiceError(Exception):
    """A server that did not start; the message has the end of its log."""


def free_port() -> int:
    """A loopback TCP port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def lasting_port(host: str = HOST) -> int:
    """A port that a server finds free again when it is started again: clients get others."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind((host, port := randint(20_000, 32_000)))
            return port


def own_address() -> str | None:
    """An IPv4 address that no other machine has; ``None`` if there is none."""
    from airflow_hive_opt.spark.session.server_process import address_of

    for found in chain(*psutil.net_if_addrs().values()):
        if found.family is socket.AF_INET and address_of(found.address):
            return found.address
    return None


def listens(port: int, host: str = HOST) -> bool:
    """Whether something accepts connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


@contextmanager
def server(
    command: Sequence[str],
    log: Path,
    ready: Callable[[], bool],
    *,
    timeout: float = 120,
    stop_with: Signals = SIGINT,
    **options: Any,
):
    """Runs ``command`` until the block ends; the block begins when ``ready`` says so.

    ``timeout`` is in seconds; ``options`` go to ``subprocess.Popen``. Raises
    :class:`ServiceError`.
    """
    with log.open("a") as file:  # one that was killed may be started again
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **options,
        )
    try:
        deadline = time.monotonic() + timeout
        while not ready():
            if process.poll() is not None:
                raise ServiceError(f"{command[0]} ended with {process.returncode}:\n{_end(log)}")
            if time.monotonic() > deadline:
                raise ServiceError(f"{command[0]} did not answer in {timeout} s:\n{_end(log)}")
            time.sleep(0.05)
        yield process
    finally:
        end(process, stop_with)


def end(process: subprocess.Popen[bytes], how: Signals) -> None:
    """Ends a server by a signal, by SIGKILL if it does not end in 30 s, and what it has started.

    SIGKILL ends all of its group at once.
    """
    with suppress(ProcessLookupError):
        if how == SIGKILL:
            os.killpg(process.pid, SIGKILL)
        else:
            process.send_signal(how)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):  # what it started and did not end, in its own group
        os.killpg(process.pid, SIGKILL)


def _end(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
