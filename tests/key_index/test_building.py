"""Builds indexes of real Iceberg tables; what they say is compared with the files' rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField
from upath import UPath

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index import batch, building, manifest, parquet_keys, tidying
from airflow_hive_opt.key_index.indexed_column import IndexingError
from tests.key_index.tables import (
    built,
    column_of,
    commit,
    found,
    holding_by_rows,
    index_of,
    orders,
    paths_of,
)


@pytest.fixture
def table(catalog):
    """Three files: orders 1 to 3, 3 to 5, and one without a number."""
    made = catalog.create_table("dw.orders", orders(1).schema)
    for keys in ((1, 2, 3), (3, 4, 5, 5), (None,)):
        made.append(orders(*keys))
    return made


def test_the_index_finds_the_files_of_a_key(root, table):
    summary = built(root, table)
    assert (summary.new_files, summary.files, summary.new_keys, summary.keys) == (3, 3, 6, 6)
    for keys in ([1], [3], [4, 1], [9], []):
        assert found(root, table, keys) == holding_by_rows(table, keys)
    assert [len(found(root, table, keys)) for keys in ([3], [4], [9])] == [2, 1, 0]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int32(), [-(2**31), 0, 7, 2**31 - 1]),
        (pa.int64(), [-(2**63), 0, 7, 2**63 - 1]),
        (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(9999, 12, 31)]),
        (pa.string(), ["", "a", "a\0", "ü\U0001f600", "x" * 5000]),
        (pa.large_string(), ["", "Z"]),
    ],
)
def test_types(root, catalog, type_, values):
    schema = pa.schema([("key", type_)])
    table = catalog.create_table("dw.typed", schema)
    for at in range(len(values)):
        table.append(pa.table({"key": pa.array([*values[: at + 1], None], type_)}))
    built(root, table, "key")
    for value in values:
        assert found(root, table, [value], "key") == holding_by_rows(table, [value], "key")
    assert len(found(root, table, [values[-1]], "key")) == 1


@pytest.mark.parametrize(
    "type_", [pa.float64(), pa.binary(), pa.decimal128(9, 2), pa.bool_(), pa.timestamp("us", "UTC")]
)
def test_other_types_are_refused(root, catalog, type_):
    table = catalog.create_table("dw.other", pa.schema([("key", type_)]))
    with pytest.raises(IndexingError, match="has the type .*: keys of an index are"):
        built(root, table, "key")


def test_a_wrong_column_is_refused(table):
    with pytest.raises(IndexingError, match="has no column 'price'"):
        column_of(table, "price")
    assert column_of(table, "ORDER_ID").column == "order_id"


def test_an_empty_table_has_an_empty_index(root, catalog):
    table = catalog.create_table("dw.empty", orders().schema)
    assert built(root, table).files == 0
    table.append(orders(1))
    assert found(root, table, [1]) == paths_of(table)
    assert built(root, table).new_files == 1
    assert found(root, table, [2]) == set()


def test_only_new_files_are_read(root, table, monkeypatch):
    built(root, table)
    read = []
    of_class = building._Builder._keys_of
    monkeypatch.setattr(
        building._Builder, "_keys_of", lambda self, file: read.append(file) or of_class(self, file)
    )
    assert built(root, table).new_files == 0
    assert read == []
    before = index_of(root, table)
    table.append(orders(1, 9))
    assert len(found(root, table, [1])) == 2  # the new file is not covered
    assert len(found(root, table, [2])) == 2
    assert built(root, table).new_files == 1
    assert len(read) == 1
    assert len(found(root, table, [2])) == 1
    assert index_of(root, table).parts[: len(before.parts)] == before.parts


def test_manifests_of_the_last_build_are_not_read_again(root, table, monkeypatch):
    built(root, table)
    table.append(orders(6))
    column = column_of(table)
    assert len(column.files(index_of(root, table).snapshot_id)) == 1
    assert len(column.files(None)) == len(column.files(12345)) == 4


def test_a_manifest_that_only_repeats_files_is_not_read(root, catalog):
    rows = orders(1, 2, 3, part=[1, 2, 3])
    schema = Schema(NestedField(1, "order_id", LongType()), NestedField(2, "part", LongType()))
    by_part = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "part"))
    table = catalog.create_table("dw.parts", schema, partition_spec=by_part)
    table.append(rows)  # one manifest
    built(root, table)
    since = index_of(root, table).snapshot_id
    table.delete("part = 1")
    column = column_of(table)
    assert (len(column.files(since)), len(column.files(None))) == (0, 2)
    table.append(orders(5, 6, part=[5, 6]))
    table.delete("part = 5")  # its manifest repeats a file that the index does not cover
    (new,) = holding_by_rows(table, [6])
    assert new in {file.path for file in column_of(table).files(since)}


def test_deleted_and_rewritten_files(root, table):
    built(root, table)
    table.overwrite(orders(3, 10), overwrite_filter="order_id = 3")  # rewrites the first two files
    for keys in ([3], [1], [10]):
        assert found(root, table, keys) >= holding_by_rows(table, keys)
    built(root, table)
    for keys in ([3], [1], [10], [4]):
        assert found(root, table, keys) == holding_by_rows(table, keys)
    table.delete("order_id < 100")
    built(root, table)
    assert found(root, table, [3]) == holding_by_rows(table, [3]) == set()


def test_rollback(root, table):
    earlier = table.current_snapshot().snapshot_id
    table.overwrite(orders(3, 10))
    built(root, table)
    table.manage_snapshots().rollback_to_snapshot(earlier).commit()
    for keys in ([3], [1], [10]):
        assert found(root, table, keys) >= holding_by_rows(table, keys)
    assert built(root, table).new_files == 3
    for keys in ([3], [1], [10]):
        assert found(root, table, keys) == holding_by_rows(table, keys)


def test_a_renamed_column_keeps_its_index(root, table):
    built(root, table)
    with table.update_schema() as update:
        update.rename_column("order_id", "number")
    table.append(orders(7).rename_columns(["number"]))
    assert built(root, table, "number").new_files == 1
    index = index_of(root, table, "number")
    assert (index.column, index.field_id, index.files) == ("number", "1", 4)
    assert len(found(root, table, [3], "number")) == 2
    assert len(found(root, table, [7], "number")) == 1


def test_a_column_that_takes_the_name_of_another_has_its_own_index(root, table):
    built(root, table)
    with table.update_schema() as update:
        update.rename_column("order_id", "old")
    with table.update_schema() as update:
        update.add_column("order_id", LongType())
    table.append(pa.table({"old": [1], "order_id": [2]}))
    summary = built(root, table)
    assert (summary.files, summary.keys) == (4, 1)  # the files before have NULL in the new column
    assert len(found(root, table, [2])) == 1
    assert found(root, table, [1]) == set()


def test_a_promoted_type_keeps_its_index(root, catalog):
    table = catalog.create_table("dw.small", pa.schema([("order_id", pa.int32())]))
    table.append(pa.table({"order_id": pa.array([1, 2], pa.int32())}))
    built(root, table)
    assert index_of(root, table).type == "int"
    with table.update_schema() as update:
        update.update_column("order_id", LongType())
    table.append(orders(2, 2**40))
    assert built(root, table).new_files == 1
    assert index_of(root, table).type == "bigint"
    assert len(found(root, table, [2])) == 2
    assert len(found(root, table, [2**40])) == 1


def test_a_file_is_read_in_pieces(root, catalog, monkeypatch):
    monkeypatch.setattr(parquet_keys, "_ROWS_AT_ONCE", 3)
    table = catalog.create_table("dw.long", orders(1).schema)
    table.append(orders(1, 2, 3, 3, 4, 1, 5, None, 6, 7))
    assert built(root, table).new_keys == 7
    for key in range(1, 8):
        assert found(root, table, [key]) == paths_of(table)


def test_many_partitions(root, catalog):
    schema = Schema(NestedField(1, "day", IntegerType()), NestedField(2, "order_id", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    table = catalog.create_table("dw.daily", schema, partition_spec=spec)
    table.append(
        pa.table(
            {
                "day": pa.array([at // 3 for at in range(300)], pa.int32()),
                "order_id": pa.array([at % 150 for at in range(300)], pa.int64()),
            }
        )
    )
    assert built(root, table).files == 100
    for keys in ([0], [149, 3], [150]):
        assert found(root, table, keys) == holding_by_rows(table, keys)
    assert len(found(root, table, [0])) == 2


def test_the_column_of_a_partition_is_left_out(root, catalog):
    schema = Schema(NestedField(1, "day", IntegerType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
    table = catalog.create_table("dw.by_day", schema, partition_spec=spec)
    table.append(pa.table({"day": pa.array([1, 2], pa.int32())}))
    summary = built(root, table, "day")
    assert summary.left_out == {"its partition has the column's value": 2}
    assert found(root, table, [1], "day") == paths_of(table)


def mapped(table, *names):
    """The names that the column has in files without field IDs, by a property of the table."""
    mapping = f'[{{"field-id": 1, "names": {json.dumps(names)}}}]'
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": mapping})


def renamed(table):
    """The mapping moves a name from one column to another, as the names of the columns do."""
    with table.update_schema() as update:
        update.rename_column("order_id", "old_id")
    with table.update_schema() as update:
        update.add_column("order_id", LongType())


def corrected(table):
    mapped(table, "order_id", "number")


def removed(table):
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")


@pytest.mark.parametrize("change", [renamed, corrected, removed])
@pytest.mark.parametrize("name", ["order_id", "number"])
def test_files_without_field_ids_are_left_out(root, table, tmp_path, change, name):
    """Which column they have depends on the table's name mapping, which may change later."""
    path = f"file://{tmp_path}/added.parquet"
    pq.write_table(orders(1, 8).rename_columns([name]), tmp_path / "added.parquet")
    mapped(table, "order_id")
    commit(table, tmp_path / "added.parquet")
    assert list(built(root, table).left_out.values()) == [1]
    assert path in found(root, table, [8])
    change(table)
    for column in {"order_id", *table.refresh().schema().column_names}:
        built(root, table, column)
        assert path in found(root, table, [8], column)
        assert path in found(root, table, [99], column)


def test_an_index_of_an_earlier_version_is_built_anew(root, table, monkeypatch):
    """It may cover files without field IDs."""
    monkeypatch.setattr(manifest, "_FORMAT", replace(manifest._FORMAT, version=1))
    built(root, table)
    monkeypatch.undo()
    with pytest.raises(DescriptorError, match="version"):
        index_of(root, table)
    assert built(root, table).new_files == len(paths_of(table))
    assert index_of(root, table).files == len(paths_of(table))


def test_texts_that_are_no_utf_8(root, catalog, tmp_path):
    table = catalog.create_table("dw.texts", pa.schema([("key", pa.string())]))
    table.append(pa.table({"key": ["a"]}))
    wrong = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xffa")]
    )
    (field,) = schema_to_pyarrow(table.schema())
    rows = pa.table([wrong], pa.schema([pa.field("key", wrong.type, metadata=field.metadata)]))
    pq.write_table(rows, tmp_path / "wrong.parquet", write_statistics=False)
    commit(table, tmp_path / "wrong.parquet")
    built(root, table, "key")
    assert len(found(root, table, ["a"], "key")) == 2
    assert found(root, table, ["\ufffd"], "key") == set()


def test_a_missing_data_file_fails_the_build_and_keeps_the_index(root, table):
    built(root, table)
    before, paths = index_of(root, table), paths_of(table)
    table.append(orders(6))
    (path,) = paths_of(table) - paths
    Path(path.removeprefix("file://")).unlink()
    with pytest.raises(IndexingError, match=f"can't read {path} of dw.orders"):
        built(root, table)
    assert index_of(root, table) == before


def test_a_rebuild_reads_all_files_again(root, table):
    built(root, table)
    before = index_of(root, table)
    assert built(root, table, rebuild=True).new_files == 3
    after = index_of(root, table)
    assert {part.pairs.sha256 for part in after.parts} == {before.parts[0].pairs.sha256}
    assert {each.name for each in after.retired} == {
        before.parts[0].pairs.name,
        before.parts[0].paths.name,
    }


def test_many_small_parts_are_merged(root, table, monkeypatch):
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", 3)
    for key in range(10, 16):
        table.append(orders(key, key % 2))
        built(root, table)
    index = index_of(root, table)
    assert len(index.parts) <= 4
    assert index.files == 9
    for keys in ([0], [1, 3], [12]):
        assert found(root, table, keys) == holding_by_rows(table, keys)


def test_a_part_has_a_limited_size(root, table, monkeypatch):
    monkeypatch.setattr(batch, "MOST_BYTES", 1)
    summary = built(root, table)
    assert (summary.parts, summary.new_files) == (2, 3)  # the file of a NULL has no keys
    assert found(root, table, [3]) == holding_by_rows(table, [3])


def expire_all_but_the_current_snapshot(table):
    current = table.refresh().current_snapshot().snapshot_id
    others = [each.snapshot_id for each in table.snapshots() if each.snapshot_id != current]
    table.maintenance.expire_snapshots().by_ids(others).commit()


def test_files_that_left_every_snapshot_are_forgotten(root, table, monkeypatch):
    for at in range(6):
        table.overwrite(orders(1, 2, at))
        built(root, table)
    index = index_of(root, table)
    assert index.files > 2 * len(paths_of(table))
    expire_all_but_the_current_snapshot(table)
    for at in range(6):
        table.append(orders(at))
        built(root, table)
    index = index_of(root, table)
    assert index.files == len(paths_of(table)) == 7
    for keys in ([0], [1], [5]):
        assert found(root, table, keys) == holding_by_rows(table, keys)


def test_a_part_of_which_most_files_left_is_written_again(root, table):
    built(root, table)
    table.delete("order_id > 3 OR order_id IS NULL")  # rewrites one file, and drops another one
    expire_all_but_the_current_snapshot(table)
    for at in range(4, 10):
        table.append(orders(at))
        built(root, table)
    assert index_of(root, table).files == len(paths_of(table))
    for keys in ([1], [3], [9]):
        assert found(root, table, keys) == holding_by_rows(table, keys)


def test_an_index_on_object_storage(table):
    root = UPath("memory://indexes")
    assert built(root, table).new_files == 3
    assert found(root, table, [3]) == holding_by_rows(table, [3])
    table.append(orders(3))
    assert built(root, table).new_files == 1
    assert built(root, table, rebuild=True).new_files == 4
    assert found(root, table, [3]) == holding_by_rows(table, [3])
