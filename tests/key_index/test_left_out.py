"""Data files that an index can't cover, so that each lookup gives them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import FileFormat

from airflow_hive_opt.key_index.building import build
from tests.key_index.tables import built, column_of, commit, found, orders, paths_of


@pytest.fixture
def table(catalog):
    made = catalog.create_table("dw.orders", orders(1).schema)
    made.append(orders(1, 2))
    return made


def rows_with(table, keys):
    """Rows with the numbers of the table's columns, but with other values."""
    (field,) = schema_to_pyarrow(table.schema())
    return pa.table([keys], pa.schema([pa.field(field.name, keys.type, metadata=field.metadata)]))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"file_format": FileFormat.ORC}, "it has the format ORC, not PARQUET"),
        ({"file_format": FileFormat.AVRO}, "it has the format AVRO, not PARQUET"),
        ({"key_metadata": b"key"}, "it is encrypted"),
    ],
)
def test_files_that_the_metadata_excludes(root, table, tmp_path, fields, why):
    path = tmp_path / "strange"  # nothing is there to be read
    commit(table, path, **fields)
    assert built(root, table).left_out == {why: 1}
    assert found(root, table, [99]) == {f"file://{path}"}
    table.append(orders(5))
    assert (built(root, table).new_files, built(root, table).files) == (1, 2)
    assert found(root, table, [99]) == {f"file://{path}"}


@pytest.mark.parametrize(
    "keys",
    [pa.array(["1", "2"]), pa.array([1.0, 2.0]), pa.array([1, 2], pa.uint32()), pa.array([True])],
)
def test_files_with_another_type(root, table, tmp_path, keys):
    path = tmp_path / "other.parquet"
    pq.write_table(rows_with(table, keys), path)
    commit(table, path)
    assert built(root, table).left_out == {f"its column has the type {keys.type}, not bigint": 1}
    assert found(root, table, [99]) == {f"file://{path}"}


def test_files_with_narrower_numbers_are_covered(root, table, tmp_path):
    path = tmp_path / "narrow.parquet"
    pq.write_table(rows_with(table, pa.array([7, None], pa.int16())), path)
    commit(table, path)
    assert built(root, table).left_out == {}
    assert found(root, table, [7]) == {f"file://{path}"}


def test_files_with_two_columns_of_one_name(root, table, tmp_path):
    path = tmp_path / "twice.parquet"
    (field,) = schema_to_pyarrow(table.schema())
    column = pa.array([1, 2], pa.int64())
    pq.write_table(pa.table([column, column], pa.schema([field, field])), path)
    commit(table, path)
    assert built(root, table).left_out == {"it has several columns of one name": 1}
    assert found(root, table, [99]) == {f"file://{path}"}


def test_files_that_are_older_than_a_column_with_a_default_value(root, table, monkeypatch):
    """PyIceberg adds no such column yet; other programs do."""
    from pyiceberg.types import LongType

    with table.update_schema() as update:
        update.add_column("customer", LongType())
    table.append(orders(3, customer=pa.array([8], pa.int64())))
    column = column_of(table, "customer")
    monkeypatch.setattr(column, "_default", 8)
    assert list(build(root, column).left_out) == [
        "it was written before the column was added, with a default value"
    ]
    assert found(root, table, [8], "customer") == paths_of(table)
    assert len(found(root, table, [9], "customer")) == 1


def test_dictionaries_are_read(root, catalog, tmp_path):
    table = catalog.create_table("dw.texts", pa.schema([("key", pa.string())]))
    path = tmp_path / "dictionary.parquet"
    keys = pa.array(["a", "b", None, "a"]).dictionary_encode()
    pq.write_table(rows_with(table, keys), path)
    commit(table, path)
    assert built(root, table, "key").new_keys == 2
    assert found(root, table, ["b"], "key") == {f"file://{path}"}
    assert found(root, table, ["c"], "key") == set()
