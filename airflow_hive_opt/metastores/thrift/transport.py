"""Opens the way to a metastore: the socket, then TLS, then who the client is."""

from __future__ import annotations

import logging
import ssl
from typing import Any, NoReturn

from pymetastore.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from airflow_hive_opt.metastores.thrift.addresses import Address
from airflow_hive_opt.metastores.thrift.kerberos import GssapiMechanism
from airflow_hive_opt.metastores.thrift.sasl import Mechanism, PlainMechanism, SaslTransport
from airflow_hive_opt.metastores.thrift.security import Kerberos, Security, SecurityError
from airflow_hive_opt.metastores.thrift.token import DigestMechanism, Token

# Thrift logs each failed connection with a traceback. Here it becomes an error in words.
for _name in ("TSocket", "TSSLSocket"):
    logging.getLogger(f"thrift.transport.{_name}").setLevel(logging.CRITICAL)
# Seconds. A server that expects another handshake may never answer.
_HANDSHAKE = 20


class Opener:
    """Opens transports, one at a time; keeps the token of a proxy user for the next one.

    Raises ``ValueError`` if the file of certificates can't be read.
    """

    def __init__(self, security: Security) -> None:
        self._identity = security.identity
        self._tls = None if security.tls is None else _context(security)
        self._token: Token | None = None

    @property
    def tells_user(self) -> bool:
        """Whether the server knows the user without being told by ``set_ugi``."""
        return self._identity is not None

    def open(self, server: Address, timeout: float) -> tuple[Any, Any]:
        """The socket, and the transport over it; ``timeout`` limits a read or write in seconds.

        Raises :class:`SecurityError`, and Thrift's exceptions.
        """
        identity = self._identity
        if not isinstance(identity, Kerberos) or not identity.proxy_user:
            return self._opened(server, timeout, self._own_mechanism(server, timeout))
        if self._token is not None:
            try:
                return self._opened(server, timeout, DigestMechanism(self._token))
            except SecurityError:  # it has lapsed, or another server of the same name gave it
                self._token = None
        self._token = self._token_for(identity, server, timeout)
        return self._opened(server, timeout, DigestMechanism(self._token))

    def _token_for(self, kerberos: Kerberos, server: Address, timeout: float) -> Token:
        """A token for the proxy user, by the client's own ticket."""
        _, transport = self._opened(server, timeout, self._own_mechanism(server, timeout))
        try:
            client = ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport))
            text = client.get_delegation_token(kerberos.proxy_user, kerberos.proxy_user)
            return Token.of(text)
        except Exception as error:
            if isinstance(error, (TTransportException, OSError)):
                raise
            said = getattr(error, "message", None) or error
            raise SecurityError(
                f"the metastore at {server} does not let this client act as "
                f"{kerberos.proxy_user!r}: {said}"
            ) from None
        finally:
            transport.close()

    def _opened(
        self, server: Address, timeout: float, mechanism: Mechanism | None
    ) -> tuple[Any, Any]:
        socket = self._socket(server)
        plain = self._tls is None and mechanism is None
        first = timeout if plain else min(timeout, _HANDSHAKE)
        socket.setTimeout(first * 1000)
        try:
            socket.open()
        except TTransportException as error:
            if self._tls is None:
                raise
            _raise_of_tls(error, server, first)
        if mechanism is None:
            transport: Any = TBufferedTransport(socket, 1 << 16)
        else:
            transport = SaslTransport(socket, mechanism)
            try:
                transport.open()
            except SecurityError as error:
                transport.close()
                raise SecurityError(f"the metastore at {server}: {error}") from None
            except TTransportException as error:
                transport.close()
                _raise_of_sasl(error, server, mechanism.name, first)
        socket.setTimeout(timeout * 1000)
        return socket, transport

    def _own_mechanism(self, server: Address, timeout: float) -> Mechanism | None:
        identity = self._identity
        if isinstance(identity, Kerberos):
            return GssapiMechanism(identity, server.host, min(timeout, _HANDSHAKE))
        return None if identity is None else PlainMechanism(identity.user, identity.password)

    def _socket(self, server: Address) -> Any:
        if self._tls is None:
            return TSocket(server.host, server.port)
        # the context checks the name, or is not to check it
        return TSSLSocket(
            server.host,
            server.port,
            ssl_context=self._tls,
            server_hostname=server.host,
            validate_callback=lambda *_: None,
        )


def _context(security: Security) -> ssl.SSLContext:
    assert security.tls is not None
    file = security.tls.ca_file
    try:
        context = ssl.create_default_context(cafile=file or None)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"the certificates in {file!r} can't be read: {error}") from None
    context.check_hostname = security.tls.check_host_name
    return context


def _raise_of_tls(error: TTransportException, server: Address, seconds: float) -> NoReturn:
    """Raises an error that names what failed: the certificate, the handshake or the socket."""
    cause = error.inner
    if isinstance(cause, ssl.SSLCertVerificationError):
        raise SecurityError(
            f"the certificate of the metastore at {server} is not accepted: "
            f"{cause.verify_message.rstrip('.')}"
        ) from None
    if isinstance(cause, TimeoutError) and "handshake" in str(cause):
        raise SecurityError(
            f"the metastore at {server} does not answer TLS within {seconds:g} s: it may expect "
            "plain Thrift"
        ) from None
    if isinstance(cause, (ssl.SSLEOFError, ConnectionResetError)):
        raise TTransportException(
            message="it closes the connection after TLS' greeting, so it may expect plain Thrift"
        ) from error
    if isinstance(cause, ssl.SSLError):
        why = cause.reason or cause
        raise SecurityError(f"TLS fails with the metastore at {server}: {why}") from None
    raise error


def _raise_of_sasl(
    error: TTransportException, server: Address, name: str, seconds: float
) -> NoReturn:
    if error.type == TTransportException.TIMED_OUT:
        raise SecurityError(
            f"the metastore at {server} does not answer {name} within {seconds:g} s: it may "
            "expect plain Thrift, or TLS"
        ) from None
    raise TTransportException(
        message=f"it closes the connection after {name}, so it may expect plain Thrift or TLS"
    ) from error
