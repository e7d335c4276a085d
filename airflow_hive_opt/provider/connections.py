"""Where a task's Spark runs: in this process, on a cluster, or on a Spark Connect server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from airflow_hive_opt.provider.airflow_compat import (
    HAS_KUBERNETES_PROVIDER,
    HAS_SPARK_PROVIDER,
    NO_KUBERNETES_PROVIDER,
    NO_SPARK_PROVIDER,
    AirflowFailException,
    AirflowNotFoundException,
    BaseHook,
)

if TYPE_CHECKING:
    from airflow_hive_opt.provider.airflow_compat import Connection

# A connection that was made from a URI has the URI's scheme as its type.
_SUBMITTED_TYPES = ("spark", "yarn", "k8s")


@dataclass(frozen=True)
class Deployment:
    """Where to run; ``address`` is a local master for ``embedded``, a URL for ``connect``.

    The URL may contain a token, so no message may show it.
    """

    kind: Literal["embedded", "submitted", "connect"]
    address: str = field(default="local[*]", repr=False)


def deployment_of(conn_id: str | None) -> Deployment:
    """The place that a connection names; the embedded Spark if there is no connection ID.

    Raises ``AirflowFailException`` for a connection that is missing, has an unsupported type, or
    needs a provider that is not installed.
    """
    if conn_id is None:
        return Deployment("embedded")
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"there is no connection {conn_id!r}: add it under Admin > Connections, or "
            "leave conn_id out for the embedded local Spark"
        ) from None
    host = connection.host or ""
    if connection.conn_type == "spark" and re.fullmatch(r"(local(\[.+\])?)?", host):
        return Deployment("embedded", host or "local[*]")
    if connection.conn_type in _SUBMITTED_TYPES:
        if not HAS_SPARK_PROVIDER:
            raise AirflowFailException(NO_SPARK_PROVIDER)
        if "k8s" in (connection.conn_type, host.partition(":")[0]) and not HAS_KUBERNETES_PROVIDER:
            raise AirflowFailException(NO_KUBERNETES_PROVIDER)
        return Deployment("submitted")
    if connection.conn_type == "spark_connect":
        return Deployment("connect", connect_url(connection))
    raise AirflowFailException(
        f"connection {conn_id!r} is of the type {connection.conn_type!r}: a statement runs on a "
        "'spark' connection (local, standalone, YARN or Kubernetes) or on a 'spark_connect' one"
    )


def connect_url(connection: Connection) -> str:
    """The URL of the Spark Connect server of a connection; raises ``AirflowFailException``."""
    if not HAS_SPARK_PROVIDER:
        raise AirflowFailException(NO_SPARK_PROVIDER)
    # imported late: only this type of connection needs it
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    if not re.fullmatch(r"(sc://)?[\w.-]+(:\d+)?", connection.host or ""):
        raise AirflowFailException(
            f"connection {connection.conn_id!r} names no Spark Connect server: its host must be a "
            "host's name or sc://name, its port a number"
        )
    hook: Any = SparkConnectHook(connection.conn_id)
    hook.get_connection = lambda _: connection  # its own would block the loop of a triggerer
    return str(hook.get_connection_url())
