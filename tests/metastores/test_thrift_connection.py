"""Faults on the way to a metastore, and servers of other versions than the one that tests run.

The other versions are Thrift servers of ours that know fewer methods: no Hive 1 or 4 is at hand.
"""

from __future__ import annotations

import getpass
import socket
import threading
from contextlib import contextmanager

import pytest
from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import FieldSchema, GetTableResult, Table
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TBufferedTransport, TFileObjectTransport

from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift.addresses import Address, addresses
from airflow_hive_opt.metastores.thrift.connection import ThriftConnection
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from tests.services.processes import HOST, free_port
from tests.services.thrift import storage


@contextmanager
def listening(serve):
    """A loopback port whose connections go to ``serve(number, connection)``."""
    with socket.create_server((HOST, 0)) as listener:

        def accept():
            number = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                number += 1
                threading.Thread(target=one, args=(number, connection), daemon=True).start()

        def one(number, connection):
            with connection:
                serve(number, connection)

        threading.Thread(target=accept, daemon=True).start()
        yield Address(HOST, listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def answer(connection, handler, without=()):
    """Serves one connection as a metastore that lacks some methods."""
    processor = ThriftHiveMetastore.Processor(handler)
    for method in without:
        del processor._processMap[method]
    with connection.makefile("rwb", buffering=0) as file:
        protocol = TBinaryProtocol(TBufferedTransport(TFileObjectTransport(file)))
        try:
            while True:
                processor.process(protocol, protocol)
        except (EOFError, OSError, Exception):  # noqa: BLE001 - whatever ends a connection
            return


class Handler:
    """A metastore with one table."""

    def __init__(self):
        self.asked = []
        self.users = []

    def set_ugi(self, user, groups):
        self.users.append(user)
        return groups

    def get_table(self, database, name):
        self.asked.append("get_table")
        keys = [FieldSchema("ds", "string", "")]
        sd = storage([("id", "bigint")], "/t")
        return Table(dbName=database, tableName=name, sd=sd, partitionKeys=keys, parameters={})

    def get_table_req(self, request):
        table = self.get_table(request.dbName, request.tblName)
        self.asked[-1] = "get_table_req"
        return GetTableResult(table=table)


@pytest.mark.parametrize(
    ("without", "asked"), [("get_table_req", "get_table"), ("get_table", "get_table_req")]
)
def test_a_table_is_found_on_servers_with_either_get_table_call(without, asked):
    handler = Handler()
    with (
        listening(lambda _, connection: answer(connection, handler, [without])) as server,
        ThriftMetastore(f"thrift://{server}") as metastore,
    ):
        assert metastore.table("t").partition_columns[0].name == "ds"
    assert handler.asked == [asked]


def test_the_user_is_sent_once_for_each_connection(monkeypatch):
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    handler = Handler()
    with (
        listening(lambda _, connection: answer(connection, handler)) as server,
        ThriftMetastore(f"thrift://{server}") as metastore,
    ):
        for name in ("t", "u"):
            metastore.table(name)
        assert metastore.work().metastore_calls == 2
        assert handler.users == ["ann"]
        metastore.close()
        monkeypatch.delenv("HADOOP_USER_NAME")
        metastore.table("v")
    assert handler.users == ["ann", getpass.getuser()]


def test_a_server_without_set_ugi_still_answers():
    handler = Handler()
    with (
        listening(lambda _, connection: answer(connection, handler, ["set_ugi"])) as server,
        ThriftMetastore(f"thrift://{server}") as metastore,
    ):
        assert metastore.table("t") is not None
    assert (handler.users, handler.asked) == ([], ["get_table_req"])


def test_a_broken_connection_is_opened_again(metastore_service):
    real = (metastore_service.host, metastore_service.port)

    def serve(number, connection):
        if number < 3:
            return  # closed at once
        with socket.create_connection(real) as onward:
            back = threading.Thread(target=pump, args=(onward, connection), daemon=True)
            back.start()
            pump(connection, onward)
            back.join()

    with listening(serve) as server:
        connection = ThriftConnection([server], timeout=20, pause=0.01)
        assert "default" in connection.call("get_all_databases")
        assert connection.calls == 3
        connection.close()
        assert "default" in connection.call("get_all_databases")
        assert connection.calls == 4
        connection.close()


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


def test_the_next_server_is_used_if_the_first_does_not_answer(metastore_service):
    dead = Address(HOST, free_port())
    alive = Address(metastore_service.host, metastore_service.port)
    connection = ThriftConnection([dead, alive], timeout=20, pause=0.01)
    assert "default" in connection.call("get_all_databases")
    connection.close()


def test_no_answer_is_an_error_with_host_and_port():
    port = free_port()
    connection = ThriftConnection([Address(HOST, port)], timeout=5, attempts=2, pause=0.01)
    with pytest.raises(MetastoreError, match=rf"127\.0\.0\.1:{port} to .*after 2 attempts"):
        connection.call("get_all_databases")


def test_a_silent_server_is_given_up_after_the_timeout():
    done = threading.Event()
    with listening(lambda *_: done.wait(30)) as server:
        connection = ThriftConnection([server], timeout=0.2, attempts=2, pause=0.01)
        with pytest.raises(MetastoreError, match="read timeout"):
            connection.call("get_all_databases")
        assert connection.calls == 2
    done.set()


def test_a_server_that_is_no_metastore_is_an_error(postgres_server):
    server = Address(postgres_server.host, postgres_server.port)
    connection = ThriftConnection([server], timeout=5, attempts=1)
    with pytest.raises(MetastoreError, match=str(server)):
        connection.call("get_all_databases")


@pytest.mark.parametrize(
    "uris",
    [
        "",
        "localhost:9083",
        "http://h:1",
        "thrift://",
        "thrift://u:secret@h:1",
        "thrift://h:x",
        "thrift://h:99999",
    ],
)
def test_invalid_metastore_uris_are_an_error_without_secrets(uris):
    with pytest.raises(ValueError, match="thrift://host:port") as raised:
        addresses(uris)
    assert "secret" not in str(raised.value)
