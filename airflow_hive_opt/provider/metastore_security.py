"""What a ``hive_metastore`` connection says of Kerberos, passwords and TLS.

The names in the extra are those of Airflow's Hive and Impala connections where these have one:

- ``auth_mechanism``, or ``authMechanism``: ``NOSASL``, ``GSSAPI`` (``KERBEROS``), or ``PLAIN``
  (``LDAP``, ``CUSTOM``) with login and password. The default is ``NOSASL``, or ``GSSAPI`` if
  Airflow's setting ``[core] security`` is ``kerberos``.
- ``principal``: the metastore's, such as ``hive/_HOST@EXAMPLE.COM``. ``kerberos_service_name`` is
  its first part, for a realm that Kerberos finds itself; default ``hive``.
- ``keytab``: a file with the client's keys; the login is the client's principal. ``ccache``: a
  cache of tickets. ``proxy_user``: the user in whose name the metastore is asked.
- ``use_ssl``, ``ca_cert`` (a file), ``check_hostname``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.provider.airflow_compat import conf

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.thrift.security import Kerberos, Password, Security
    from airflow_hive_opt.provider.airflow_compat import Connection

_MECHANISM = ("auth_mechanism", "authMechanism")  # the Hive provider's names, new and old
_NONE = ("", "NOSASL")
_KERBEROS = ("GSSAPI", "KERBEROS")
_PASSWORD = ("PLAIN", "LDAP", "CUSTOM")


def security_of(connection: Connection) -> Security:
    """The security of a connection; raises ``ValueError`` if it is not valid."""
    from airflow_hive_opt.metastores.thrift.security import Security, Tls

    extra = connection.extra_dejson
    tls = None
    if _flag(extra, "use_ssl", default=False):
        tls = Tls(_text(extra, "ca_cert"), _flag(extra, "check_hostname", default=True))
    return Security(_identity_of(connection), tls)


def security_for_spark(security: Security) -> dict[str, str]:
    """Spark's settings for the same security in its own Hive client, without secrets."""
    from airflow_hive_opt.metastores.thrift.security import Kerberos, Password

    found = {}
    identity = security.identity
    if isinstance(identity, Kerberos):
        found["spark.hadoop.hive.metastore.sasl.enabled"] = "true"
        if "@" in identity.service:  # otherwise it is in hive-site.xml
            found["spark.hadoop.hive.metastore.kerberos.principal"] = identity.service
        if identity.keytab and identity.client:
            found["spark.kerberos.keytab"] = identity.keytab
            found["spark.kerberos.principal"] = identity.client
    elif isinstance(identity, Password):  # of Hive 4; the password is in a credential file
        found["spark.hadoop.hive.metastore.client.auth.mode"] = "PLAIN"
        found["spark.hadoop.hive.metastore.client.plain.username"] = identity.user
    if security.tls is not None:
        found["spark.hadoop.hive.metastore.use.SSL"] = "true"
    return found


def _identity_of(connection: Connection) -> Kerberos | Password | None:
    from airflow_hive_opt.metastores.thrift.security import Kerberos, Password

    extra = connection.extra_dejson
    mechanism = next((str(extra[name]) for name in _MECHANISM if extra.get(name)), "").upper()
    if not mechanism and conf.get("core", "security", fallback="") == "kerberos":
        mechanism = "GSSAPI"
    if mechanism in _NONE:
        return None
    login = connection.login or ""
    if mechanism in _PASSWORD:
        if not (login and connection.password):
            raise ValueError(f"{mechanism} needs login and password")
        return Password(login, connection.password)
    if mechanism not in _KERBEROS:
        raise ValueError(
            f"it requires {mechanism}, but this client supports NOSASL, GSSAPI and PLAIN only. "
            "Remove metastore_conn_id: then the local task uses Spark's own metastore client"
        )
    service = _text(extra, "kerberos_service_name") or "hive"
    return Kerberos(
        _text(extra, "principal") or f"{service}/_HOST",
        login,
        _text(extra, "keytab"),
        _text(extra, "ccache"),
        _text(extra, "proxy_user"),
    )


def _text(extra: dict[str, Any], name: str) -> str:
    return str(extra.get(name) or "").strip()


def _flag(extra: dict[str, Any], name: str, *, default: bool) -> bool:
    """A boolean of the extra, which is text if the connection was made from a URI."""
    given = str(extra.get(name, default)).strip().lower()
    if given not in ("true", "false", "1", "0", ""):
        raise ValueError(f"{name} in its extra must be true or false, not {given!r}")
    return given in ("true", "1") if given else default
