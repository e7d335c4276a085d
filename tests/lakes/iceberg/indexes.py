"""Builds key indexes of tables that Spark writes."""

from __future__ import annotations

from pyiceberg.table import StaticTable, Table

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.key_index.manifest import KeyIndex, read_index
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place


def static_table(session, table: str) -> Table:
    """The table as Spark has it now, for PyIceberg."""
    metadata = load(session, Place.of(table)).table().operations().current()
    return StaticTable.from_metadata(str(metadata.metadataFileLocation()))


def build_index(session, root, table: str, column: str) -> KeyIndex:
    """Brings the index of a column up to date."""
    of = IcebergColumn(static_table(session, table), table, column)
    build(root, of)
    index = read_index(root, of.table_uuid, of.field_id)
    assert index is not None
    return index
