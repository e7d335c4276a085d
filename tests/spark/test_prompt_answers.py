"""Long answers of the JVM are acknowledged at once."""

from __future__ import annotations

import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from airflow_hive_opt.spark.session.prompt_answers import get_answers_at_once

fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
pytestmark = pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only on Linux")
LONG = "a" * 9_000


class Client:
    """Py4J's, with one connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.stream = self.socket.makefile("rb")

    def get_thread_connection(self):
        return self


def unsent(at_once: bool) -> int:
    """The bytes of a long answer that are still with the JVM when its first part has been read."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = Client(listening.getsockname()[1])
        jvm, _ = listening.accept()
    gateway = SimpleNamespace(_gateway_client=client)
    if at_once:
        get_answers_at_once(SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway)))
    with jvm, client.socket, client.stream:
        for _ in range(20):  # Linux sees that the two sides take turns
            client.socket.sendall(b"question\n")
            jvm.recv(100)
            jvm.sendall(b"answer\n")
            assert client.stream.readline() == b"answer\n"
        client.socket.sendall(b"question\n")
        jvm.recv(100)
        jvm.sendall(LONG[:8192].encode())  # as Java's buffer does
        jvm.sendall(LONG[8192:].encode())
        assert len(client.stream.read1(8192)) == 8192
        (found,) = struct.unpack("i", fcntl.ioctl(jvm, termios.TIOCOUTQ, bytes(4)))
    return found


def test_the_second_part_of_an_answer_does_not_wait_for_linux():
    assert (unsent(at_once=False), unsent(at_once=True)) == (len(LONG), 0)


def test_it_holds_for_every_thread_and_after_an_interrupted_call(spark):
    client = spark.sparkContext._gateway._gateway_client
    for _ in range(2):  # as each run in the same Spark does
        get_answers_at_once(spark)

    def reads_by() -> str:
        assert str(spark._jvm.java.lang.StringBuilder(LONG).toString()) == LONG
        return type(client.get_thread_connection().stream.raw).__name__

    with ThreadPoolExecutor(1) as threads:
        found = [reads_by(), threads.submit(reads_by).result()]
    client.get_thread_connection().close()
    assert [*found, reads_by()] == ["_Acknowledged"] * 3


def test_a_connection_without_the_option_is_read_all_the_same():
    here, jvm = socket.socketpair()  # of Unix, which has no TCP
    client = SimpleNamespace(socket=here, stream=here.makefile("rb"))
    client.get_thread_connection = lambda: client
    gateway = SimpleNamespace(_gateway_client=client)
    get_answers_at_once(SimpleNamespace(sparkContext=SimpleNamespace(_gateway=gateway)))
    with here, jvm, client.stream:
        jvm.sendall(b"answer\n")
        assert client.stream.readline() == b"answer\n"
