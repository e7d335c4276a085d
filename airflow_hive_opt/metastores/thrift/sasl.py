"""Thrift over SASL, as Hive's servers expect it: a handshake, then frames."""

from __future__ import annotations

from io import BytesIO
from struct import pack, unpack
from typing import Any, Protocol

from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from airflow_hive_opt.metastores.thrift.security import SecurityError

_START, _OK, _BAD, _ERROR, _COMPLETE = range(1, 6)
# In bytes: a server that is none must not make the client wait for what it will never send.
_LONGEST_MESSAGE = 1 << 20
_LONGEST_FRAME = (1 << 31) - 1
_NOT_SASL = "its answer to {} is none of SASL's, so it may expect plain Thrift or TLS"


class Mechanism(Protocol):
    """One side of SASL's handshake; it raises :class:`SecurityError`."""

    name: str

    def answer(self, challenge: bytes | None) -> bytes:
        """The answer to a challenge of the server; ``None`` is before its first one."""

    def finish(self, last: bytes) -> None:
        """Checks the data that the server sends when it accepts the client."""

    def wrap(self, data: bytes) -> bytes:
        """A frame for the server."""

    def unwrap(self, frame: bytes) -> bytes:
        """The data in the server's frame."""


class WithoutLayer:
    """The half of a :class:`Mechanism` that neither signs nor encrypts frames."""

    def wrap(self, data: bytes) -> bytes:
        """See :class:`Mechanism`."""
        return data

    def unwrap(self, frame: bytes) -> bytes:
        """See :class:`Mechanism`."""
        return frame


class PlainMechanism(WithoutLayer):
    """User and password, in plain text."""

    name = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._secret = f"\0{user}\0{password}".encode()

    def answer(self, challenge: bytes | None) -> bytes:
        """See :class:`Mechanism`."""
        return self._secret if challenge is None else b""

    def finish(self, last: bytes) -> None:
        """See :class:`Mechanism`."""


class SaslTransport(TTransportBase, CReadableTransport):  # type: ignore[misc] # Thrift has no types
    """A transport over an open socket."""

    def __init__(self, socket: Any, mechanism: Mechanism) -> None:
        self._socket = socket
        self._mechanism = mechanism
        self._to_write = BytesIO()
        self._to_read = BytesIO()

    def open(self) -> None:
        """The handshake; raises :class:`SecurityError` and Thrift's exceptions."""
        mechanism = self._mechanism
        first = mechanism.answer(None)
        self._send(_START, mechanism.name.encode())
        self._send(_OK, first)
        while True:
            status, message = self._received()
            if status == _OK:
                self._send(_OK, mechanism.answer(message))
            elif status == _COMPLETE:
                mechanism.finish(message)
                return
            elif status in (_BAD, _ERROR):
                why = " ".join(message.decode(errors="replace").split())
                raise SecurityError(
                    f"it refuses {mechanism.name}: {why or 'without a word'}. Its log says more"
                )
            else:
                raise SecurityError(_NOT_SASL.format(mechanism.name))

    def isOpen(self) -> bool:  # noqa: N802 - Thrift's name
        """Whether the socket is open."""
        return bool(self._socket.isOpen())

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def write(self, data: bytes) -> None:
        """Keeps the data until :meth:`flush`."""
        self._to_write.write(data)

    def flush(self) -> None:
        """Sends a frame with what was written."""
        frame = self._mechanism.wrap(self._to_write.getvalue())
        self._to_write = BytesIO()
        self._socket.write(pack("!I", len(frame)) + frame)
        self._socket.flush()

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes of a frame."""
        found = self._to_read.read(size)
        if not found and size:
            self._to_read = BytesIO(self._frame())
            found = self._to_read.read(size)
        return found

    @property
    def cstringio_buf(self) -> BytesIO:
        """The buffer that Thrift's C code reads."""
        return self._to_read

    def cstringio_refill(self, partial: bytes, needed: int) -> BytesIO:
        """``partial`` and further frames, with at least ``needed`` bytes."""
        found = bytearray(partial)
        while len(found) < needed:
            found += self._frame()
        self._to_read = BytesIO(found)
        return self._to_read

    def _frame(self) -> bytes:
        (length,) = unpack("!I", self._socket.readAll(4))
        if length > _LONGEST_FRAME:
            raise TTransportException(
                message=f"its answer has a frame of {length:,} bytes: too long"
            )
        return self._mechanism.unwrap(self._socket.readAll(length))

    def _send(self, status: int, message: bytes) -> None:
        self._socket.write(pack("!BI", status, len(message)) + message)
        self._socket.flush()

    def _received(self) -> tuple[int, bytes]:
        status, length = unpack("!BI", self._socket.readAll(5))
        if length > _LONGEST_MESSAGE:
            raise SecurityError(_NOT_SASL.format(self._mechanism.name))
        return status, self._socket.readAll(length) if length else b""
