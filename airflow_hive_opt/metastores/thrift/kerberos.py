"""Kerberos: SASL's GSSAPI (RFC 4752), with the tickets that MIT's or Heimdal's library finds."""

from __future__ import annotations

import os
from typing import Any

from thrift.transport.TTransport import TTransportException

from airflow_hive_opt.metastores.thrift.security import Kerberos, SecurityError
from airflow_hive_opt.metastores.time_limit import within

NOT_INSTALLED = "Kerberos needs the gssapi package: pip install 'airflow-hive-opt[kerberos]'"
# The layers of RFC 4752, from the cheapest: none, checked, encrypted.
_NONE, _INTEGRITY, _PRIVACY = 1, 2, 4
_LONGEST_FRAME = (1 << 24) - 1  # bytes
# MIT's codes: no KDC of the realm answers, or is known.
_NO_KDC = (2529639068, 2529639066)


class GssapiMechanism:
    """A :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`, for one connection.

    It has the cheapest layer that the server offers, as Hadoop's clients do by default. The
    service is at ``host``. Kerberos may take ``seconds`` to give a ticket.
    """

    name = "GSSAPI"

    def __init__(self, kerberos: Kerberos, host: str, seconds: float) -> None:
        try:
            self._failure = _gssapi().exceptions.GSSError
        except ImportError as error:
            raise SecurityError(f"{NOT_INSTALLED} ({error})") from None
        self._kerberos = kerberos
        self._service = kerberos.service.replace("_HOST", host.lower())
        self._seconds = seconds
        self._context: Any = None
        self._layer = 0

    def answer(self, challenge: bytes | None) -> bytes:
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if challenge is None:
            try:
                self._context, first = within(self._seconds, self._begin, "Kerberos")
            except TimeoutError as error:
                raise SecurityError(f"{self._no_ticket}: {error}. Is the KDC running?") from None
            return first
        try:
            if not self._context.complete:
                return self._context.step(challenge) or b""
            return self._chosen_layer(challenge)
        except self._failure as error:
            raise SecurityError(f"Kerberos fails for {self._service}: {_words(error)}") from None

    def finish(self, last: bytes) -> None:  # noqa: ARG002 - GSSAPI's server adds nothing
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if not self._layer:
            raise SecurityError("the server ends the handshake before it has proved who it is")

    def wrap(self, data: bytes) -> bytes:
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if self._layer == _NONE:
            return data
        try:
            return bytes(self._context.wrap(data, self._layer == _PRIVACY).message)
        except self._failure as error:
            raise self._ended(error) from None

    def unwrap(self, frame: bytes) -> bytes:
        """See :class:`~airflow_hive_opt.metastores.thrift.sasl.Mechanism`."""
        if self._layer == _NONE:
            return frame
        try:
            found = self._context.unwrap(frame)
        except self._failure as error:
            raise self._ended(error) from None
        if self._layer == _PRIVACY and not found.encrypted:
            raise SecurityError("the server's frame is not encrypted")
        return bytes(found.message)

    def _ended(self, error: Any) -> Exception:
        """The error for a connection that was open; a new connection gets a new ticket."""
        ended: Exception = TTransportException(message=f"Kerberos ends it: {_words(error)}")
        return ended

    def _begin(self) -> tuple[Any, bytes]:
        """The context and its first message, with a ticket that Kerberos gives now.

        An error becomes words here, because another thread does not know what Kerberos has said.
        """
        gssapi = _gssapi()
        flag, kerberos = gssapi.RequirementFlag, self._kerberos
        if kerberos.keytab and not os.access(kerberos.keytab, os.R_OK):
            raise SecurityError(f"the keytab {kerberos.keytab} can't be read")
        try:
            credentials = _credentials(kerberos)
            _ = credentials.lifetime  # which asks for a ticket
        except gssapi.exceptions.ExpiredCredentialsError:
            raise SecurityError(
                f"{self._no_ticket}: the client's own has lapsed. {self._advice}"
            ) from None
        except self._failure as error:
            advice = "" if error.min_code in _NO_KDC else f". {self._advice}"
            raise SecurityError(f"{self._no_ticket}: {_words(error)}{advice}") from None
        try:
            context = gssapi.SecurityContext(
                name=_name_of(self._service),
                creds=credentials,
                mech=gssapi.MechType.kerberos,
                flags=[flag.mutual_authentication, flag.integrity, flag.confidentiality],
                usage="initiate",
            )
            return context, context.step() or b""
        except self._failure as error:
            raise SecurityError(f"{self._no_ticket}: {_words(error)}") from None

    @property
    def _no_ticket(self) -> str:
        return f"Kerberos gives no ticket for {self._service}"

    @property
    def _advice(self) -> str:
        if not self._kerberos.keytab:
            return "Renew it with kinit or `airflow kerberos`, or name a keytab"
        whose = f" for {self._kerberos.client}" if self._kerberos.client else ""
        return f"Does the keytab {self._kerberos.keytab} have keys{whose}?"

    def _chosen_layer(self, offer: bytes) -> bytes:
        offered = self._context.unwrap(offer).message
        layers = [
            each for each in (_NONE, _INTEGRITY, _PRIVACY) if offered[:1] and offered[0] & each
        ]
        if not layers:
            raise SecurityError("the server offers no layer of GSSAPI that this client has")
        self._layer = layers[0]
        longest = 0 if self._layer == _NONE else _LONGEST_FRAME
        # no name follows: the server takes the one in the ticket
        chosen = bytes([self._layer]) + longest.to_bytes(3, "big")
        return bytes(self._context.wrap(chosen, False).message)


def _gssapi() -> Any:
    """The module ``gssapi``, untyped, because its types exist only where it is installed."""
    import gssapi

    return gssapi


def _words(error: Any) -> str:
    """The message of Kerberos; GSSAPI's own message only if Kerberos has none."""
    said = error.get_all_statuses(error.min_code, False) or error.get_all_statuses(
        error.maj_code, True
    )
    texts = (text.decode(errors="replace") if isinstance(text, bytes) else text for text in said)
    return "; ".join(" ".join(text.split()) for text in texts)


def _name_of(service: str) -> Any:
    gssapi = _gssapi()
    if "@" in service:
        return gssapi.Name(service, gssapi.NameType.kerberos_principal)
    name, _, host = service.partition("/")
    return gssapi.Name(f"{name}@{host}", gssapi.NameType.hostbased_service)


def _credentials(kerberos: Kerberos) -> Any:
    """The credentials in the keytab or the cache, which are read now."""
    gssapi = _gssapi()
    name, store = None, {}
    if kerberos.client:
        name = gssapi.Name(kerberos.client, gssapi.NameType.kerberos_principal)
    if kerberos.keytab:
        store["client_keytab"] = kerberos.keytab
        own = f"MEMORY:airflow-hive-opt {kerberos.keytab} {kerberos.client}"
        store["ccache"] = kerberos.cache or own
    elif kerberos.cache:
        store["ccache"] = kerberos.cache
    return gssapi.Credentials(
        name=name, mechs=[gssapi.MechType.kerberos], usage="initiate", store=store or None
    )
