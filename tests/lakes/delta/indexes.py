"""Builds key indexes of tables that Spark writes."""

from __future__ import annotations

from upath import UPath

from airflow_hive_opt.key_index.building import Built, build
from airflow_hive_opt.key_index.delta import DeltaColumn
from airflow_hive_opt.key_index.delta_log import read_log


def build_index(session, root, table: str, column: str) -> Built:
    """Brings the index of a column up to date."""
    return build(root, DeltaColumn(read_log(table, place_of(session, table)), table, column))


def place_of(session, table: str) -> UPath:
    """The table's folder."""
    location = session.sql(f"DESCRIBE DETAIL {table}").head()["location"]
    return UPath(location.removeprefix("file:"))
