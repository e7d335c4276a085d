"""Delta tables that deltalake writes, and what an index must say about them."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from upath import UPath

from airflow_hive_opt.key_index.building import build
from airflow_hive_opt.key_index.delta import DeltaColumn
from airflow_hive_opt.key_index.delta_log import read_log
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import read_index

LOG = "_delta_log"


def orders(*keys, day="2024-01-01", **columns):
    """Rows of one day."""
    days = pa.array([day] * len(keys), pa.string())
    return pa.table({"order_id": pa.array(keys, pa.int64()), "day": days, **columns})


def append(place, rows, **options):
    write_deltalake(place, rows, mode="append", partition_by=["day"], **options)


def column_of(place, column="order_id"):
    """The column of a table at its current version."""
    return DeltaColumn(read_log("dw.orders", UPath(place)), "dw.orders", column)


def built(root, place, column="order_id", **options):
    return build(root, column_of(place, column), **options)


def paths_of(place):
    """The data files of the current version, as an index has them."""
    added = pa.table(DeltaTable(place).get_add_actions())
    return {unquote(path) for path in added.column("path").to_pylist()}


def rows_in(place, path, column):
    """The values of a column of one file, by its name in the file; NULLs if it has no such one."""
    file = pq.ParquetFile(f"{place}/{path}")
    if column not in file.schema_arrow.names:
        return [None] * file.metadata.num_rows
    return file.read(columns=[column]).column(column).to_pylist()


def holding_by_rows(place, keys, column="order_id"):
    """The data files that hold a key, by reading all of them."""
    return {path for path in paths_of(place) if set(keys) & set(rows_in(place, path, column))}


def index_of(root, place, column="order_id"):
    of = column_of(place, column)
    return read_index(root, of.table_uuid, of.field_id)


def found(root, place, keys, column="order_id"):
    """The files of the current version that must be read for the keys, by the index."""
    result = files_holding(root, index_of(root, place, column), keys)
    paths = paths_of(place)
    return {path for path in paths if path in result.holding or path not in result.covered}


def changed(place, name, change):
    """Changes the actions ``name`` of the first commit."""
    log = place / LOG / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines() if line]
    for action in actions:
        if name in action:
            change(action[name])
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def with_schema(place, change):
    """Changes the fields of the schema, by their names."""

    def edit(metadata):
        schema = json.loads(metadata["schemaString"])
        change({field["name"]: field for field in schema["fields"]})
        metadata["schemaString"] = json.dumps(schema)

    changed(place, "metaData", edit)


def add_file(place, path, version, written=None, **fields):
    """Commits a file as it is described; ``written`` are its rows, if there is such a file."""
    if written is not None:
        file = place / unquote(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(written, file)
    action = {
        **{"path": path, "partitionValues": {"day": "2024-01-01"}, "size": 700},
        **{"modificationTime": 0, "dataChange": True, **fields},
    }
    (place / LOG / f"{version:020}.json").write_text(json.dumps({"add": action}) + "\n")
