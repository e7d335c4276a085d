"""The servers in a value of ``hive.metastore.uris``."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_PORT = 9083
_URI = re.compile(r"thrift://(?P<host>[^\s/@:\[\]]+|\[[0-9a-fA-F:.]+\])(:(?P<port>\d{1,5}))?/?")


@dataclass(frozen=True)
class Address:
    """The host and port of a metastore."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def addresses(uris: str) -> tuple[Address, ...]:
    """The servers in a value of ``hive.metastore.uris``; raises ``ValueError``.

    >>> [str(found) for found in addresses("thrift://a:9083,thrift://b")]
    ['a:9083', 'b:9083']
    """
    found = []
    for uri in uris.split(","):
        address = _URI.fullmatch(uri.strip())
        port = int(address["port"] or DEFAULT_PORT) if address else 0
        if address is None or not 0 < port < 1 << 16:
            raise ValueError(f"a metastore's URI is thrift://host:port, not {_bare(uri)!r}")
        found.append(Address(address["host"].strip("[]"), port))
    return tuple(found)


def _bare(uri: str) -> str:
    """A URI without user and password."""
    return uri.strip().rpartition("@")[2]
