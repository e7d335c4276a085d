"""Which process of a Spark Connect server answers, by what its settings tell."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.remote_operation import ServerProcess
from airflow_hive_opt.spark.session import server_process
from airflow_hive_opt.spark.session.server_process import has_ended, process_of

SERVER = "10.0.0.5:15002"
FIRST = {"spark.app.startTime": "1000", "spark.driver.host": "10.0.0.5"}
SECOND = {**FIRST, "spark.app.startTime": "5000"}
ADDRESSES = {
    "spark.example.org": ["10.0.0.5"],
    "balancer.example.org": ["10.0.0.9"],
    "two.example.org": ["10.0.0.5", "10.0.0.6"],
    "localhost": ["127.0.0.1"],
}


def session_of(settings):
    """A session of a server with these settings."""
    return SimpleNamespace(conf=settings)


def refusing():
    """A session of a server that does not tell its settings."""

    def refuses(*_):
        raise PySparkException("[CONFIG_NOT_AVAILABLE] not here")

    return SimpleNamespace(conf=SimpleNamespace(get=refuses))


def go_on():
    """Nobody stops the attempt."""


@pytest.fixture(autouse=True)
def names(monkeypatch):
    """A resolver of names; an address is its own name."""

    def resolved(host, *_):
        if host == "unknown":
            raise OSError(host)
        if ".." in host:
            host.encode("idna")
        return [(None, None, None, "", (found, 0)) for found in ADDRESSES.get(host, [host])]

    monkeypatch.setattr(server_process.socket, "getaddrinfo", resolved)


@pytest.fixture
def slept(monkeypatch):
    """The pauses that it makes."""
    found = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("host", "server", "address"),
    [
        ("10.0.0.5", SERVER, SERVER),
        ("spark.example.org", "spark.example.org:15002", SERVER),
        ("spark.example.org", SERVER, SERVER),
        ("10.0.0.5", "balancer.example.org:15002", ""),
        ("two.example.org", "two.example.org:15002", ""),
        ("localhost", "localhost:15002", ""),
        ("172.18.0.2", "172.18.0.2:15002", ""),
        ("0.0.0.0", "0.0.0.0:15002", ""),
        ("unknown", SERVER, ""),
        ("unknown", "unknown:15002", ""),
        ("", SERVER, ""),
        ("a..b", SERVER, ""),
    ],
)
def test_an_address_counts_if_it_is_the_servers_own(host, server, address):
    found = process_of(session_of({**FIRST, "spark.driver.host": host}), server)
    assert found == (ServerProcess(1000, address) if address else ServerProcess())


@pytest.mark.parametrize(("own", "is_one"), [("15003", True), ("15002", False), ("0", False)])
def test_a_proxy_on_the_servers_machine_has_another_port(own, is_one):
    settings = {**FIRST, "spark.connect.grpc.binding.port": own}
    assert bool(process_of(session_of(settings), "10.0.0.5:15003").address) is is_one


def test_a_server_may_refuse_to_tell_its_settings(slept):
    assert process_of(refusing(), SERVER) == ServerProcess()
    before = process_of(session_of(FIRST), SERVER)
    with pytest.raises(PySparkException, match="not here"):
        has_ended(before, refusing(), SERVER, go_on)


@pytest.mark.parametrize(
    ("now", "is_ended"),
    [
        (FIRST, False),
        (SECOND, True),
        ({**SECOND, "spark.driver.host": "10.0.0.6"}, False),
        ({**SECOND, "spark.app.startTime": ""}, False),
        ({**SECOND, "spark.app.startTime": "mine"}, False),
    ],
    ids=["the same", "started again", "another machine", "unknown", "no number"],
)
def test_a_process_has_ended_if_another_one_has_its_address(slept, now, is_ended):
    before = process_of(session_of(FIRST), SERVER)
    assert has_ended(before, session_of(now), SERVER, go_on) is is_ended
    assert sum(slept) == (30 if is_ended else 0)


def test_the_wait_for_a_process_ends_when_the_attempt_is_stopped(slept):
    def stopped():
        if len(slept) == 3:
            raise KeyError("stopped")

    before = process_of(session_of(FIRST), SERVER)
    with pytest.raises(KeyError):
        has_ended(before, session_of(SECOND), SERVER, stopped)
    assert len(slept) == 3
