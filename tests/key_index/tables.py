"""Iceberg tables in a catalog in SQLite, and what an index must say about them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.iceberg import IcebergColumn
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import read_index


def column_of(table, column="order_id"):
    """The column of a table at its current snapshot."""
    return IcebergColumn(table.refresh(), ".".join(table.name()), column)


def built(root, table, column="order_id", **options):
    return build(root, column_of(table, column), **options)


def paths_of(table):
    """The data files of the current snapshot."""
    files = table.refresh().inspect.files()
    return set(files.column("file_path").to_pylist()) if files.num_rows else set()


def rows_in(path, column):
    """The values of a column of one file, by its name in the file; NULLs if it has no such one."""
    file = pq.ParquetFile(path.removeprefix("file://"))
    if column not in file.schema_arrow.names:
        return [None] * file.metadata.num_rows
    return file.read(columns=[column]).column(column).to_pylist()


def holding_by_rows(table, keys, column="order_id"):
    """The data files that hold a key, by reading all of them."""
    return {path for path in paths_of(table) if set(keys) & set(rows_in(path, column))}


def found(root, table, keys, column="order_id"):
    """The files of the current snapshot that must be read for the keys, by the index."""
    of = column_of(table, column)
    index = read_index(root, of.table_uuid, of.field_id)
    result = files_holding(root, index, keys)
    return {
        path for path in paths_of(table) if path in result.holding or path not in result.covered
    }


def index_of(root, table, column="order_id"):
    of = column_of(table, column)
    return read_index(root, of.table_uuid, of.field_id)


def orders(*keys, **columns):
    return pa.table({"order_id": pa.array(keys, pa.int64()), **columns})


def commit(table, path, **fields):
    """Adds a file as it is described, whatever it is."""
    with table.transaction() as made, made.update_snapshot().fast_append() as files:
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            partition=Record(),
            record_count=2,
            file_size_in_bytes=100,
            **{"file_path": f"file://{path}", "file_format": FileFormat.PARQUET, **fields},
        )
        file.spec_id = table.spec().spec_id
        files.append_data_file(file)
    table.refresh()
