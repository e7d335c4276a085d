"""A connection to a Hive Metastore over Thrift, with timeouts, retries and counted calls."""

from __future__ import annotations

import getpass
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import (
    MetaException,
    NoSuchObjectException,
    UnknownDBException,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.thrift.addresses import Address
from airflow_hive_opt.metastores.thrift.security import PLAIN, Security
from airflow_hive_opt.metastores.thrift.transport import Opener

log = logging.getLogger(__name__)


class UnknownMethod(MetastoreError):
    """The server's version does not have the method."""


class CallRejected(MetastoreError):
    """The server refuses the call: Hive's ``MetaException``."""


class NoSuchObject(MetastoreError):
    """The database, table or partition does not exist."""


class ThriftConnection:
    """One connection for one thread, opened on first use.

    ``security`` says how it proves who it is. Without such a proof it sends the user's name to the
    server, as Hive's clients do: ``$HADOOP_USER_NAME``, or else the user of this process. ``calls``
    does not count that call. Raises ``ValueError`` if the security's files can't be read.

    ``timeout`` limits a single read or write, in seconds. After a transport error it waits
    ``pause`` seconds, doubled each time, and tries the next server, up to ``attempts`` attempts in
    total. All calls only read, so a retry is safe.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        timeout: float,
        attempts: int = 4,
        pause: float = 0.25,
        security: Security = PLAIN,
    ) -> None:
        self._servers = list(servers)
        self._opener = Opener(security)
        self._timeout = timeout
        self._attempts = attempts
        self._pause = pause
        self._socket: Any = None
        self._transport: Any = None
        self._client: Any = None
        self._user_is_set = False
        self.calls = 0

    def call(self, method: str, *arguments: object) -> Any:
        """The server's result of a call; transport errors are retried.

        Raises :class:`UnknownMethod`, :class:`NoSuchObject`, :class:`CallRejected`,
        :class:`~airflow_hive_opt.metastores.thrift.security.SecurityError`, and
        :class:`MetastoreError` for all other failures.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(method, arguments)
            except (TTransportException, TProtocolException, OSError) as error:
                server = self._servers[0]
                self.close()
                if attempt == self._attempts:
                    raise MetastoreError(
                        f"no answer from the metastore at {' or '.join(map(str, self._servers))} "
                        f"to {method}, after {attempt} attempts: {_words(error)}. Is it running, "
                        "can this machine connect to it, does it require Kerberos or TLS?"
                    ) from error
                pause = self._pause * 2 ** (attempt - 1)
                log.warning("metastore at %s: %s; again in %.2g s", server, _words(error), pause)
                time.sleep(pause)
                self._servers.append(self._servers.pop(0))
        raise AssertionError("unreachable")

    @contextmanager
    def with_timeout(self, timeout: float) -> Iterator[None]:
        """Within the block, limits reads and writes to ``timeout`` seconds, without a retry."""
        patient = self._timeout, self._attempts
        self._timeout, self._attempts = timeout, 1
        try:
            yield
        finally:
            self._timeout, self._attempts = patient
            if self._socket is not None:
                self._socket.setTimeout(self._timeout * 1000)

    def close(self) -> None:
        """Closes the connection; the next call opens another."""
        if self._transport is not None:
            self._transport.close()
        self._socket = self._transport = self._client = None
        self._user_is_set = False

    def _once(self, method: str, arguments: Sequence[object]) -> Any:
        server = self._servers[0]
        if self._client is None:
            self._open(server)
        self.calls += 1
        self._set_user()
        try:
            return getattr(self._client, method)(*arguments)
        except (NoSuchObjectException, UnknownDBException) as error:
            raise NoSuchObject(f"the metastore at {server}: {error.message}") from error
        except MetaException as error:
            raise CallRejected(
                f"the metastore at {server} refuses {method}: {error.message}"
            ) from error
        except TApplicationException as error:
            if error.type == TApplicationException.UNKNOWN_METHOD:
                raise UnknownMethod(f"the metastore at {server} does not know {method}") from error
            raise MetastoreError(
                f"the metastore at {server} failed in {method}: {error.message}; its log says why"
            ) from error
        except (TTransportException, TProtocolException):
            raise
        except TException as error:
            raise MetastoreError(
                f"the metastore at {server} failed in {method}: {_words(error)}"
            ) from error

    def _set_user(self) -> None:
        """Sends the user's name; the server accepts it only as the first call of a connection."""
        user = None if self._user_is_set else _user()
        self._user_is_set = True
        if user is None:
            return
        try:
            self._client.set_ugi(user, [])
        except (TApplicationException, MetaException) as error:
            log.debug("the metastore does not want to know who asks: %s", _words(error))

    def _open(self, server: Address) -> None:
        self._socket, self._transport = self._opener.open(server, self._timeout)
        self._user_is_set = self._opener.tells_user
        self._client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(self._transport))


def _user() -> str | None:
    """The user's name, determined as in Hadoop's clients."""
    if named := os.environ.get("HADOOP_USER_NAME"):
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the process's user id has no name
        return None


def _words(error: Exception) -> str:
    kind = error.type if isinstance(error, TTransportException) else None
    if kind == TTransportException.END_OF_FILE:
        return "it closes the connection"
    if kind == TTransportException.SIZE_LIMIT or isinstance(error, TProtocolException):
        return f"its answer is none of Thrift's ({error})"
    return str(getattr(error, "message", None) or error or type(error).__name__)
