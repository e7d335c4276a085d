"""A proxy before a Thrift metastore that fails at a chosen call."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase, TTransportException

from airflow_hive_opt.statement.text_enum import StrEnum
from tests.services.processes import HOST

# What Hive's client says of itself, which plain Spark and ours say as often as they connect.
_NO_CALLS = ("set_ugi",)
_PATIENCE = 120  # seconds; no answer of a metastore takes so long
PATIENCE_OF_CLIENTS = 2  # seconds; set in clients that are to meet Fault.LATE


class Fault(StrEnum):
    """What happens to the call."""

    NONE = "none"
    REFUSE = "refuse"
    """It never reaches the server."""
    CUT = "cut"
    """The server does it, and the answer is lost."""
    TWICE = "twice"
    """The server does it twice, as after a lost packet; the client gets the second answer."""
    ERROR = "error"
    """The server says that it failed, and has done nothing."""
    DOWN = "down"
    """From this call on nothing reaches the server."""
    LATE = "late"
    """It reaches the server once the client has given up and asked again."""


class _Recording(TTransportBase):
    """Reads a socket and keeps the bytes of the message."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.bytes = bytearray()

    def read(self, size: int) -> bytes:
        """See Thrift's transport."""
        data = self._connection.recv(size)
        if not data:
            raise TTransportException(TTransportException.END_OF_FILE)
        self.bytes += data
        return data


def message(connection: socket.socket) -> tuple[str, bytes]:
    """The next message's method and all its bytes; raises ``TTransportException`` at the end."""
    recording = _Recording(connection)
    protocol = TBinaryProtocol(recording)
    name, _, _ = protocol.readMessageBegin()
    protocol.skip(TType.STRUCT)
    protocol.readMessageEnd()
    return name, bytes(recording.bytes)


def refusal(name: str) -> bytes:
    """The server's reply that the call failed."""
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(name, TMessageType.EXCEPTION, 0)
    TApplicationException(TApplicationException.INTERNAL_ERROR, "a fault").write(protocol)
    protocol.writeMessageEnd()
    return buffer.getvalue()


@dataclass
class Proxy:
    """A running proxy; ``calls`` are the methods that were called since :meth:`plan`."""

    port: int
    server: int
    calls: list[str] = field(default_factory=list)
    fault: Fault = Fault.NONE
    at: int = 0
    held: threading.Event = field(default_factory=threading.Event)
    """Set once a call has come that is held."""
    go: threading.Event = field(default_factory=threading.Event)
    """Until it is set, the call that is held waits."""
    hold_at: int = 0
    late: list[threading.Event] = field(default_factory=list)
    """The calls that come late; set once the server has done them."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def uri(self) -> str:
        """``hive.metastore.uris`` for clients."""
        return f"thrift://{HOST}:{self.port}"

    def plan(self, fault: Fault = Fault.NONE, at: int = 0) -> None:
        """Starts a new count of calls; ``fault`` happens at call number ``at``, counted from 1.

        It also happens at the following calls of the same method, because clients retry. ``LATE``
        happens only once. Waits for late calls of the previous plan.
        """
        for done in self.late:
            done.wait(_PATIENCE)
        with self._lock:
            self.calls, self.fault, self.at, self.late = [], fault, at, []

    def hold(self, at: int) -> None:
        """The ``at``-th call from now on waits for :attr:`go` before it reaches the server."""
        self.plan()
        self.held.clear()
        self.go.clear()
        self.hold_at = at

    def serve(self, client: socket.socket) -> None:
        """Forwards a client's calls until the client disconnects or a fault ends the connection."""
        with client, suppress(OSError, TTransportException):
            upstream = socket.create_connection((HOST, self.server), timeout=_PATIENCE)
            with upstream:
                while True:
                    name, call = message(client)
                    fault = self._met(name)
                    if fault in (Fault.REFUSE, Fault.DOWN):
                        return
                    if fault is Fault.ERROR:
                        client.sendall(refusal(name))
                        continue
                    if fault is Fault.LATE:
                        self._late(upstream, call)
                        return
                    upstream.sendall(call)
                    _, answer = message(upstream)
                    if fault is Fault.TWICE:
                        upstream.sendall(call)
                        _, answer = message(upstream)
                    if fault is Fault.CUT:
                        return
                    client.sendall(answer)

    def _late(self, upstream: socket.socket, call: bytes) -> None:
        done = threading.Event()
        self.late.append(done)
        try:
            time.sleep(PATIENCE_OF_CLIENTS + 1)
            upstream.sendall(call)
            message(upstream)
        finally:
            done.set()

    def _met(self, name: str) -> Fault:
        if name in _NO_CALLS:
            down = self.fault is Fault.DOWN and len(self.calls) >= self.at
            return Fault.DOWN if down else Fault.NONE
        with self._lock:
            self.calls.append(name)
            number = len(self.calls)
        if number == self.hold_at:
            self.held.set()
            self.go.wait(_PATIENCE)
        if self.fault is Fault.DOWN and self.at <= number:
            return Fault.DOWN
        if number < self.at or self.at == 0:
            return Fault.NONE
        if self.fault is Fault.LATE:
            return self.fault if number == self.at else Fault.NONE
        # a client that asks again meets the fault again
        return self.fault if set(self.calls[self.at - 1 :]) == {name} else Fault.NONE


@contextmanager
def proxy(server_port: int) -> Iterator[Proxy]:
    """A proxy before the server until the block ends."""
    with socket.create_server((HOST, 0)) as listening:
        running = Proxy(listening.getsockname()[1], server_port)

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:  # the block has ended
                    return
                threading.Thread(target=running.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield running
        running.go.set()
