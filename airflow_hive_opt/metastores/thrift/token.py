"""Hive's delegation tokens: SASL's DIGEST-MD5 (RFC 2831), with the token as user and password."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from dataclasses import dataclass, field

from airflow_hive_opt.metastores.thrift.sasl import WithoutLayer
from airflow_hive_opt.metastores.thrift.security import SecurityError

_REALM = _HOST = "default"  # Hadoop's, for every server
_FIELD = re.compile(rb'([a-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,]*))')


@dataclass(frozen=True)
class Token:
    """A token of Hadoop's for one user."""

    identifier: bytes
    password: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Token:
        """Reads the text that a server gives; raises ``ValueError``.

        >>> Token.of("AnRrAXAFS0lORANTVkM")
        Token(identifier=b'tk')
        """
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            identifier, rest = _counted(data)
            password, _ = _counted(rest)
        except (binascii.Error, IndexError) as error:
            raise ValueError(f"no token of Hadoop's: {error}") from None
        return cls(identifier, password)


class DigestMechanism(WithoutLayer):
    """A :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism` without a layer."""

    name = "DIGEST-MD5"

    def __init__(self, token: Token, nonce: str = "") -> None:
        self._user = base64.b64encode(token.identifier)
        self._password = base64.b64encode(token.password)
        self._nonce = (nonce or secrets.token_hex(16)).encode()
        self._expected = b""

    def answer(self, challenge: bytes | None) -> bytes:
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if challenge is None:
            return b""
        if self._expected:
            self.finish(challenge)
            return b""
        given = _fields(challenge)
        nonce, place = given.get(b"nonce", b""), f"null/{_HOST}".encode()
        middle = b":".join((nonce, b"00000001", self._nonce, b"auth"))
        user = b":".join((self._user, _REALM.encode(), self._password))
        secret = hashlib.md5(user).digest() + b":" + nonce + b":" + self._nonce  # noqa: S324
        self._expected = _response(secret, middle, b":" + place)
        values = {
            b"charset": b"utf-8",
            b"username": b'"' + self._user + b'"',
            b"realm": b'"' + _REALM.encode() + b'"',
            b"nonce": b'"' + nonce + b'"',
            b"nc": b"00000001",
            b"cnonce": b'"' + self._nonce + b'"',
            b"digest-uri": b'"' + place + b'"',
            b"response": _response(secret, middle, b"AUTHENTICATE:" + place),
            b"qop": b"auth",
        }
        return b",".join(name + b"=" + value for name, value in values.items())

    def finish(self, last: bytes) -> None:
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if last and _fields(last).get(b"rspauth") != self._expected:
            raise SecurityError("the server does not know the token that it has given")


def _response(secret: bytes, middle: bytes, second: bytes) -> bytes:
    parts = _hex(secret), middle, _hex(second)
    return _hex(b":".join(parts))


def _hex(data: bytes) -> bytes:
    return hashlib.md5(data).hexdigest().encode()  # noqa: S324 - the mechanism has no other


def _fields(challenge: bytes) -> dict[bytes, bytes]:
    return {name: quoted or bare for name, quoted, bare in _FIELD.findall(challenge)}


def _counted(data: bytes) -> tuple[bytes, bytes]:
    """The bytes whose number Hadoop writes before them, and the rest."""
    first = data[0] - 256 if data[0] > 127 else data[0]
    if first >= -112:
        size, start = first, 1
    else:  # as many bytes as the first one says below -112
        start = -111 - first
        size = int.from_bytes(data[1:start], "big")
    if not 0 <= size <= len(data) - start:
        raise IndexError("it is cut off")
    return data[start : start + size], data[start + size :]
