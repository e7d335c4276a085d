"""Builds key indexes for tests, from the data files themselves: deleted rows count too."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_hive_opt.key_index.manifest import KeyIndex, folder_of, read_index, write_index
from airflow_hive_opt.key_index.part import write_part
from airflow_hive_opt.spark.catalog.lakes.key_indexes import column_numbers, table_uuid
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place

_ARROW = {"bigint": pa.int64(), "int": pa.int64(), "string": pa.large_binary(), "date": pa.date32()}


def build_index(session, root, table: str, column: str) -> KeyIndex:
    """Brings the index of a column up to date: the files that it does not cover become a part."""
    loaded = load(session, Place.of(table))
    uuid, number = table_uuid(loaded), column_numbers(session, loaded)[column]
    type_ = dict(session.table(table).dtypes)[column]
    before = read_index(root, uuid, number)
    folder = folder_of(root, uuid, number)
    parts = before.parts if before else ()
    covered = {path for part in parts for path in part.read_paths(folder)}
    rows = session.sql(f"SELECT file_path FROM {table}.files WHERE content = 0").collect()
    paths = sorted({row[0] for row in rows} - covered)
    if paths:
        parts = (*parts, _part(folder, paths, number, _ARROW[type_]))
    index = KeyIndex(uuid, table, number, column, type_, parts)
    write_index(root, index)
    return index


def _part(folder, paths, number, type_):
    found = []
    for at, path in enumerate(paths):
        file = pq.ParquetFile(path.removeprefix("file:"))
        name = _name(file.schema_arrow, number)
        keys = file.read(columns=[name]).column(0) if name else pa.chunked_array([], type_)
        keys = pc.unique(keys.cast(type_).drop_null())
        found.append(pa.table({"key": keys, "file": pa.array([at] * len(keys), pa.uint32())}))
    pairs = pa.concat_tables(found).sort_by("key").combine_chunks()
    return write_part(
        folder, pairs.column("key").combine_chunks(), pairs.column("file").combine_chunks(), paths
    )


def _name(schema, number: int) -> str | None:
    for field in schema:
        if int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")) == number:
            return field.name
    return None
