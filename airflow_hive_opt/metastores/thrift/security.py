"""How a client proves to a metastore who it is, and how it knows the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_hive_opt.metastores.metastore import MetastoreError


class SecurityError(MetastoreError):
    """Client and server do not agree on who they are. The same call would fail again."""


@dataclass(frozen=True)
class Kerberos:
    """Tickets of Kerberos (SASL's GSSAPI).

    - ``service`` is the metastore's principal. Its ``_HOST`` stands for the host of the address.
      Without a realm, Kerberos finds it by the host.
    - ``keytab`` is a file with the client's keys, and ``client`` its principal there. The default
      is the keytab's first. Tickets from a keytab are renewed when they have lapsed.
    - ``cache`` is a cache of tickets. Without a keytab the default is Kerberos' own, which
      ``$KRB5CCNAME`` names. It is read at every connection.
    - ``proxy_user`` is the user in whose name calls are made, if it is another one.
    """

    service: str = "hive/_HOST"
    client: str = ""
    keytab: str = ""
    cache: str = ""
    proxy_user: str = ""


@dataclass(frozen=True)
class Password:
    """A user and its password (SASL's PLAIN), which LDAP or the metastore itself checks."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class Tls:
    """The server has a certificate of an authority in ``ca_file``, or of one of this machine's.

    ``check_host_name`` says that the certificate must be for the host of the address.
    """

    ca_file: str = ""
    check_host_name: bool = True


@dataclass(frozen=True)
class Security:
    """The identity and TLS that a client uses before its first call; none by default."""

    identity: Kerberos | Password | None = None
    tls: Tls | None = None


PLAIN = Security()
