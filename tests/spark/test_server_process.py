"""Which process of a Spark Connect server answers, by what its settings tell."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.remote_operation import ServerProcess
from airflow_hive_opt.spark.session.server_process import has_ended, process_of

SERVER = "spark.example.org:15002"
FIRST = {"spark.app.id": "local-1", "spark.driver.host": "10.0.0.5"}
SECOND = {**FIRST, "spark.app.id": "local-2", "spark.app.startTime": "5000"}


def session_of(settings, now=100_000):
    """A session of a server with these settings, whose clock says ``now``."""
    rows = SimpleNamespace(collect=lambda: [(now,)])
    return SimpleNamespace(conf=settings, sql=lambda _: rows)


@pytest.fixture
def slept(monkeypatch):
    """How long it waits."""
    found = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


@pytest.mark.parametrize(
    ("own", "server", "place"),
    [
        ({}, SERVER, "10.0.0.5:15002"),
        ({"spark.connect.grpc.binding.port": "15003"}, SERVER, "10.0.0.5:15003"),
        ({"spark.connect.grpc.binding.port": "0"}, SERVER, ""),  # another one at each start
        ({"spark.driver.host": "localhost"}, SERVER, ""),
        ({"spark.driver.host": "localhost"}, "127.0.0.1:15002", "localhost:15002"),
        ({"spark.driver.host": "172.17.0.2"}, SERVER, ""),
        ({"spark.driver.host": ""}, SERVER, ""),
    ],
)
def test_a_place_is_that_of_one_server(own, server, place):
    found = process_of(session_of({**FIRST, **own}), server)
    assert found == ServerProcess("local-1", place)


def test_a_server_may_refuse_to_tell_its_settings():
    def refuses(*_):
        raise PySparkException("[CONFIG_NOT_AVAILABLE] not here")

    refusing = SimpleNamespace(conf=SimpleNamespace(get=refuses))
    assert process_of(refusing, SERVER) == ServerProcess()


@pytest.mark.parametrize(
    ("now", "is_ended"),
    [
        (FIRST, False),
        (SECOND, True),
        ({**SECOND, "spark.driver.host": "10.0.0.6"}, False),
        ({**SECOND, "spark.connect.grpc.binding.port": "15003"}, False),
        ({**SECOND, "spark.app.id": ""}, False),
    ],
    ids=["the same", "started again", "another host", "another port", "unknown"],
)
def test_a_process_has_ended_if_another_one_has_its_place(slept, now, is_ended):
    before = process_of(session_of(FIRST), SERVER)
    assert has_ended(before, session_of(now), SERVER) is is_ended
    assert slept == []


@pytest.mark.parametrize(("now", "seconds"), [(5_000, 30), (25_000, 10), (1_000, 30)])
def test_a_process_that_was_told_to_stop_gets_time_to_end(slept, now, seconds):
    """A clock that is set back makes nobody wait longer."""
    assert has_ended(ServerProcess("local-1", "10.0.0.5:15002"), session_of(SECOND, now), SERVER)
    assert slept == [seconds]
