"""A statement whose client was killed: another client follows it or stops it, and knows its end."""

from __future__ import annotations

import time
from dataclasses import replace
from signal import SIGKILL
from uuid import uuid4

import pytest
from packaging.version import Version

from tests.versions.installed import SPARK

if Version("4.0") > SPARK:
    pytest.skip("Spark Connect needs PySpark 4.0", allow_module_level=True)

from airflow_hive_opt.documents.remote_operation import OperationId
from airflow_hive_opt.spark.session import server_process
from airflow_hive_opt.spark.session.connect import remote_session, server_of
from airflow_hive_opt.spark.session.connect_operation import Ending, NotEnded, left_operation
from airflow_hive_opt.spark.session.server_process import has_ended, process_of
from tests.services.processes import HOST, free_port
from tests.services.spark_connect import spark_connect
from tests.spark.connect_writer import begun

ROWS = 8
# Each row takes some time, and Spark can interrupt the wait.
SLOW = (
    "INSERT INTO left.rows SELECT id, java_method('java.lang.Thread', 'sleep', {wait}L) "
    f"FROM range(0, {ROWS}, 1, 4)"
)
TELLS_ENDINGS = Version("4.2") <= SPARK
"""Whether the server says how an operation has ended of which it has given up the responses."""


@pytest.fixture(scope="module")
def session(connect_server):
    with remote_session(connect_server.url, {}) as found:
        found.sql("CREATE DATABASE left")
        found.sql("CREATE TABLE left.rows (id BIGINT, waited STRING) USING parquet")
        yield found
        found.sql("DROP DATABASE left CASCADE")


@pytest.fixture
def rows(session):
    """Counts the table's rows, which are none at first."""
    session.sql("TRUNCATE TABLE left.rows")

    def counted() -> int:
        session.sql("REFRESH TABLE left.rows")
        return session.table("left.rows").count()

    return counted


def ended(url: str, found: OperationId, patience: float | None = 300) -> Ending:
    with left_operation(url, found, patience) as left:
        return left.ending()


def test_a_statement_whose_client_is_killed_is_followed_to_its_end(connect_server, rows):
    with begun(connect_server.url, SLOW.format(wait=800)) as (client, found):
        time.sleep(1)
        client.kill()
        client.wait()
    assert rows() == 0
    assert ended(connect_server.url, found) is Ending.SUCCEEDED
    assert rows() == ROWS


def test_a_statement_that_ended_without_a_client_is_known_to_have_succeeded(connect_server, rows):
    with begun(connect_server.url, SLOW.format(wait=0)) as (client, found):
        assert client.stdout.readline() == "ended\n"
        client.kill()
        client.wait()
    for _ in range(2):  # also by a client that dies in turn
        assert ended(connect_server.url, found) is Ending.SUCCEEDED
    assert rows() == ROWS


def test_a_statement_that_failed_without_a_client_is_known_to_have_failed(connect_server, rows):
    failing = SLOW.format(wait=10).replace("SELECT id", "SELECT IF(id < 5, id, raise_error('no'))")
    with begun(connect_server.url, failing) as (client, found):
        assert client.stdout.readline() == "ended\n"
    assert ended(connect_server.url, found) is Ending.FAILED
    assert rows() == 0


def test_a_statement_is_stopped_and_writes_nothing_after_its_end(connect_server, rows):
    with begun(connect_server.url, SLOW.format(wait=3000)) as (client, found):
        time.sleep(1)
        client.kill()
        client.wait()
    with pytest.raises(NotEnded, match="still runs"):
        ended(connect_server.url, found, 0.5)
    with left_operation(connect_server.url, found, 60) as left:
        left.interrupt()
        assert left.ending() is Ending.UNCLEAR
        left.interrupt()  # does nothing more
        assert left.ending() is Ending.UNCLEAR
        before = rows()
        time.sleep(4)
        assert rows() == before == 0
        left.release_session()
        assert left.ending() is Ending.UNKNOWN
        left.interrupt()


def test_two_clients_follow_one_statement(connect_server, rows):
    """The first one, which is not dead after all, reads its responses too."""
    with begun(connect_server.url, SLOW.format(wait=800)) as (client, found):
        time.sleep(1)
        while (ending := ended(connect_server.url, found)) is Ending.NOT_BEGUN:
            time.sleep(1)
        assert ending is Ending.SUCCEEDED
        assert client.stdout.readline() == "ended\n"
    assert rows() == ROWS


@pytest.mark.slow
def test_a_client_that_asks_at_the_very_start_is_never_told_that_the_statement_failed(
    connect_server, rows
):
    """Just before its thread begins, the server gives up an operation that another one asks for."""
    endings = set()
    for _ in range(25):
        with begun(connect_server.url, SLOW.format(wait=0)) as (client, found):
            while (ending := ended(connect_server.url, found)) is Ending.NOT_BEGUN:
                time.sleep(0.01)
            endings.add(ending)
            assert client.stdout.readline() == "ended\n"
    assert Ending.SUCCEEDED in endings <= {Ending.SUCCEEDED, Ending.UNCLEAR}


def test_nothing_is_known_of_an_operation_that_never_began(connect_server, session):
    other = str(uuid4())
    client = session.client
    of_server = client._server_session_id
    here = OperationId(client._user_id or "", session.session_id, other, of_server)
    assert ended(connect_server.url, here) is Ending.NOT_BEGUN
    assert ended(connect_server.url, replace(here, server_session=other)) is Ending.UNKNOWN
    assert ended(connect_server.url, replace(here, session=other)) is Ending.UNKNOWN


def test_a_server_that_does_not_answer_does_not_say_that_a_statement_has_ended(monkeypatch):
    monkeypatch.setattr("airflow_hive_opt.spark.session.connect_operation._PAUSE", 0.01)
    nowhere = f"sc://{HOST}:{free_port()}"
    found = OperationId("me", str(uuid4()), str(uuid4()), str(uuid4()))
    with pytest.raises(NotEnded, match="does not say"):
        ended(nowhere, found, None)
    with left_operation(nowhere, found) as left, pytest.raises(NotEnded, match="does not say"):
        left.interrupt()


@pytest.mark.slow
def test_a_server_that_was_started_again_does_not_know_whether_a_statement_began(
    tmp_path, monkeypatch
):
    """Whoever asks it for the session gets one: an interrupt, or the client that has begun."""
    monkeypatch.setattr(server_process, "_TO_END", 1)
    monkeypatch.setattr(server_process, "_NOT_OF_ONE_MACHINE", ())  # it is on loopback here
    with spark_connect(tmp_path) as server:
        with remote_session(server.url, {}) as session:
            before = process_of(session, server_of(server.url))
            assert not has_ended(before, session, server_of(server.url), list)
            session.sql("CREATE DATABASE left")
            session.sql("CREATE TABLE left.rows (id BIGINT, waited STRING) USING parquet")
        with begun(server.url, SLOW.format(wait=30_000)) as (_, found):
            server.kill(SIGKILL)
            server.start()
            with left_operation(server.url, found) as left:
                left.interrupt()
                assert left.ending() is Ending.UNKNOWN
            with remote_session(server.url, {}) as session:
                assert has_ended(before, session, server_of(server.url), list)


@pytest.mark.slow
def test_a_server_that_has_given_up_a_statement_tells_its_end(tmp_path):
    own = {
        "spark.connect.execute.manager.detachedTimeout": "2s",
        "spark.connect.execute.manager.maintenanceInterval": "500ms",
        # until then the server takes a dead client for one that reads
        "spark.connect.execute.reattachable.senderMaxStreamDuration": "1s",
    }
    with spark_connect(tmp_path, own) as server, remote_session(server.url, {}) as session:
        session.sql("CREATE DATABASE left")
        session.sql("CREATE TABLE left.rows (id BIGINT, waited STRING) USING parquet")
        found = {}
        for wait in (0, 30_000):
            with begun(server.url, SLOW.format(wait=wait)) as (client, found[wait]):
                time.sleep(1 if wait else 0)
                if not wait:
                    client.stdout.readline()
        time.sleep(6)
        endings = [ended(server.url, each) for each in found.values()]
        known = [Ending.SUCCEEDED, Ending.UNCLEAR]  # the server ends what nobody reads
        assert endings == (known if TELLS_ENDINGS else [Ending.UNKNOWN] * 2)
        assert session.table("left.rows").count() == ROWS
