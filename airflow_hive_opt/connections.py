"""Where a task's Spark runs: in this process, or on a cluster by submit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

# A connection made from a URI has the URI's scheme for its type.
_SUBMITTED_TYPES = ("spark", "yarn", "k8s", "kubernetes")


@dataclass(frozen=True)
class Place:
    """Where to run; ``master`` is a local Spark master, for ``embedded`` alone."""

    kind: Literal["embedded", "submitted"]
    master: str = "local[*]"


def place_of(conn_id: str | None) -> Place:
    """The place that a connection names; the embedded Spark without one.

    Raises ``AirflowFailException`` for a connection that is missing or of another kind.
    """
    if conn_id is None:
        return Place("embedded")
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"there is no connection {conn_id!r}: add it under Admin > Connections, or "
            "leave conn_id out for the embedded local Spark"
        ) from None
    host = connection.host or ""
    if connection.conn_type == "spark" and re.fullmatch(r"(local(\[.+\])?)?", host):
        return Place("embedded", host or "local[*]")
    if connection.conn_type in _SUBMITTED_TYPES:
        return Place("submitted")
    raise AirflowFailException(
        f"connection {conn_id!r} is of the type {connection.conn_type!r}: a statement runs on a "
        "'spark' connection (local, standalone, YARN or Kubernetes)"
    )
