"""The clients with which a sensor reads tables that keep their own list of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.provider.airflow_compat import AirflowFailException

if TYPE_CHECKING:
    from airflow_hive_opt.metastores.lakes import LakeClient
    from airflow_hive_opt.provider.airflow_compat import Connection

# The storage options of deltalake by the names of the fields of an ``aws`` connection's extra.
_OF_AWS = {
    "aws_session_token": "aws_session_token",
    "region_name": "aws_region",
    "endpoint_url": "aws_endpoint",
}


def delta_tables(connection: Connection | None) -> LakeClient:
    """Delta tables, with the credentials of a connection, or with the machine's own.

    Login and password of an ``aws`` connection are the access key. The extra of any other
    connection has the storage options of ``deltalake``. Raises ``AirflowFailException``.
    """
    from airflow_hive_opt.metastores.delta import DeltaTables
    from airflow_hive_opt.metastores.lakes import CatalogError

    try:
        return DeltaTables({} if connection is None else _options(connection))
    except CatalogError as error:
        raise AirflowFailException(str(error)) from None


def _options(connection: Connection) -> dict[str, str]:
    extra = connection.extra_dejson
    if connection.conn_type != "aws":
        return {name: str(value) for name, value in extra.items()}
    found = {
        "aws_access_key_id": connection.login or extra.get("aws_access_key_id"),
        "aws_secret_access_key": connection.password or extra.get("aws_secret_access_key"),
        **{option: extra.get(name) for name, option in _OF_AWS.items()},
    }
    if str(extra.get("endpoint_url") or "").startswith("http://"):
        found["aws_allow_http"] = "true"
    return {name: str(value) for name, value in found.items() if value}


def in_words(error: Exception, *conn_ids: str | None) -> str:
    """A client's error as text, with the connections that may have caused it.

    >>> in_words(ValueError("no answer"), None, "lake")
    "connection 'lake': no answer"
    """
    named = " or ".join(repr(each) for each in conn_ids if each is not None)
    return f"connection {named}: {error}" if named else str(error)
