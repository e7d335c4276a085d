"""Gets answers of the JVM of more than 8 KB, such as lists of keys and partitions, without a pause.

The JVM sends such an answer in two parts, and the second one only after Linux has acknowledged the
first: Py4J leaves Nagle's algorithm on. Linux would wait 40 ms for something to send along.
"""

from __future__ import annotations

import io
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get_answers_at_once(session: SparkSession) -> None:
    """From now on, what the JVM sends over this thread's connection is acknowledged at once.

    So is what it sends over all connections that are made later, of any thread and any session of
    this process's Spark. It may be called for each session.
    """
    client: Any = session.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    if not hasattr(socket, "TCP_QUICKACK") or not hasattr(client, "get_thread_connection"):
        return  # only Linux has the option, and only Py4J's usual client a connection a thread

    def set_thread_connection(connection: Any) -> None:
        _acknowledge(connection)
        type(client).set_thread_connection(client, connection)

    client.set_thread_connection = set_thread_connection
    _acknowledge(client.get_thread_connection())


def _acknowledge(connection: Any) -> None:
    stream = None if connection is None else connection.stream
    if stream is not None and not isinstance(stream.raw, _Acknowledged):
        connection.stream = io.BufferedReader(_Acknowledged(stream.detach(), connection.socket))


class _Acknowledged(io.RawIOBase):
    """What ``raw`` reads from ``connection``, whose other end hears of it at once."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket) -> None:
        self._raw = raw
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        count = self._raw.readinto(buffer)
        with suppress(OSError):  # what has been read counts
            # Linux forgets it with the next packet
            self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
