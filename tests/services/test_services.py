"""Tests of the servers that other tests use: they answer, keep their data, and end."""

from __future__ import annotations

import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.services.postgres import postgres
from tests.services.processes import HOST, ServiceError, listens, server


def test_postgres_keeps_its_data_between_starts():
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch).chmod(0o755)
        folder = Path(scratch, "kept")
        with postgres(folder) as first:
            first.create_database("a")
            first.create_database("a")
            with first.connect("a") as connection:
                connection.execute("CREATE TABLE t AS SELECT 42 AS n")
        assert not listens(first.port)
        with postgres(folder) as second, second.connect("a") as connection:
            assert connection.execute("SELECT n FROM t").fetchone() == (42,)


def test_postgres_requires_the_password_and_hides_it(postgres_server):
    assert postgres_server.password not in repr(postgres_server)
    url = postgres_server.url("postgres", "postgresql").replace(postgres_server.password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url)


def test_the_error_of_a_server_that_ends_has_its_output(tmp_path):
    command = ["sh", "-c", "echo no such luck; exit 3"]
    with (
        pytest.raises(ServiceError, match="ended with 3:\nno such luck"),
        server(command, tmp_path / "log", lambda: False),
    ):
        pass


def test_child_processes_of_a_server_end_with_the_server(tmp_path):
    script = "sleep 600 & echo $! > child.new; mv child.new child; wait"
    child = tmp_path / "child"
    with server(["sh", "-c", script], tmp_path / "log", child.exists, cwd=tmp_path):
        assert lives(child.read_text().strip())
    deadline = time.monotonic() + 30  # killed already; the system takes it away when it likes
    while lives(child.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lives(process):
    try:
        return Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_metastore_process_does_not_show_the_database_password(
    metastore_service, postgres_server
):
    arguments = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # a process that has just ended
            arguments.append(path.read_bytes())
    assert any(b"HiveMetaStore" in line for line in arguments)
    assert not any(postgres_server.password.encode() in line for line in arguments)
    with socket.create_connection((HOST, metastore_service.port), timeout=5):
        pass
