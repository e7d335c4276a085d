"""The tables of a star join: ``fact``, partitioned by ``p``, and ``keys``, in a database."""

from __future__ import annotations

from typing import Any


def make_star(session: Any, database: str, rows: int = 10) -> None:
    """Makes the two tables with the same ``rows``, in which ``id`` and ``p`` are equal."""
    session.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    frame = session.range(rows).selectExpr("CAST(id AS INT) id", "CAST(id AS INT) p")
    frame.coalesce(1).write.partitionBy("p").saveAsTable(f"{database}.fact")
    frame.coalesce(1).write.saveAsTable(f"{database}.keys")
