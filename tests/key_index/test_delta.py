"""Builds indexes of real Delta tables; what they say is compared with the files' rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("deltalake")  # environments of other versions do not have it

from deltalake import DeltaTable, write_deltalake
from upath import UPath

from airflow_hive_opt.key_index import tidying
from airflow_hive_opt.key_index.delta import DeltaColumn
from airflow_hive_opt.key_index.delta_log import read_log
from airflow_hive_opt.key_index.indexed_column import IndexingError, NotIndexable
from tests.key_index.delta_tables import (
    LOG,
    add_file,
    append,
    built,
    changed,
    column_of,
    found,
    holding_by_rows,
    index_of,
    orders,
    paths_of,
    with_schema,
)

READER = {"minReaderVersion": 3, "minWriterVersion": 7}


@pytest.fixture
def place(tmp_path):
    """Three files: orders 1 to 3, 3 to 5, and one without a number."""
    made = tmp_path / "orders"
    for keys in ((1, 2, 3), (3, 4, 5, 5), (None,)):
        append(made, orders(*keys))
    return made


def test_the_index_finds_the_files_of_a_key(root, place):
    summary = built(root, place)
    assert (summary.new_files, summary.files, summary.new_keys, summary.keys) == (3, 3, 6, 6)
    for keys in ([1], [3], [4, 1], [9], []):
        assert found(root, place, keys) == holding_by_rows(place, keys)
    assert [len(found(root, place, keys)) for keys in ([3], [4], [9])] == [2, 1, 0]
    index = index_of(root, place)
    assert (index.field_id, index.type, index.snapshot_id) == ("order_id", "bigint", 2)
    assert index.table_uuid == str(DeltaTable(place).metadata().id)


@pytest.mark.parametrize(
    ("type_", "name", "values"),
    [
        (pa.int8(), "tinyint", [-(2**7), 0, 2**7 - 1]),
        (pa.int16(), "smallint", [-(2**15), 0, 2**15 - 1]),
        (pa.int32(), "int", [-(2**31), 0, 7, 2**31 - 1]),
        (pa.int64(), "bigint", [-(2**63), 0, 7, 2**63 - 1]),
        (pa.date32(), "date", [date(1582, 10, 15), date(1970, 1, 1), date(9999, 12, 31)]),
        (pa.string(), "string", ["", "a", "a\0", "ü\U0001f600", "x" * 5000]),
    ],
)
def test_types(root, tmp_path, type_, name, values):
    place = tmp_path / "typed"
    for at in range(len(values)):
        append(place, orders(1, 2, key=pa.array([values[at], None], type_)))
    assert built(root, place, "KEY").left_out == {}
    assert index_of(root, place, "key").type == name
    for value in values:
        assert found(root, place, [value], "key") == holding_by_rows(place, [value], "key")
        assert len(found(root, place, [value], "key")) == 1


OTHER_COLUMNS = {
    "has the type double": pa.array([1.0]),
    "has the type binary": pa.array([b"a"]),
    r"has the type decimal\(9,2\)": pa.array([None], pa.decimal128(9, 2)),
    "has the type boolean": pa.array([True]),
    "has the type timestamp": pa.array([None], pa.timestamp("us", "UTC")),
    "has the type struct": pa.array([{"a": 1}]),
    "has the type array": pa.array([[1]]),
}


@pytest.mark.parametrize("why", OTHER_COLUMNS)
def test_columns_of_other_types_are_refused(tmp_path, why):
    append(tmp_path / "t", orders(1, key=OTHER_COLUMNS[why]))
    with pytest.raises(NotIndexable, match=f"the column key of dw.orders {why}"):
        column_of(tmp_path / "t", "key")


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}, r"has the type char\(3\)"),
        ({"__COLLATIONS": {"key": "spark.UTF8_LCASE"}}, "has a collation"),
        ({"parquet.field.id": 4}, "field IDs"),
    ],
)
def test_texts_that_spark_reads_in_another_way_are_refused(tmp_path, metadata, why):
    append(tmp_path / "t", orders(1, key=["a"]))
    with_schema(tmp_path / "t", lambda fields: fields["key"]["metadata"].update(metadata))
    with pytest.raises(NotIndexable, match=why):
        column_of(tmp_path / "t", "key")


def test_a_varchar_is_a_text(root, tmp_path):
    append(tmp_path / "t", orders(1, key=["a"]))
    told = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"}
    with_schema(tmp_path / "t", lambda fields: fields["key"]["metadata"].update(told))
    assert built(root, tmp_path / "t", "key").new_keys == 1


def test_columns_that_are_not_one_column_are_refused(place):
    for name, why in (("price", "has no column 'price'"), ("Day", "day of .* is a partition")):
        with pytest.raises(NotIndexable, match=why):
            column_of(place, name)
    log = read_log("dw.orders", UPath(place))
    fields = [{"name": name, "type": "long", "metadata": {}} for name in ("order_id", "ORDER_ID")]
    log = replace(log, schema=json.dumps({"fields": fields}))  # deltalake does not open such a one
    with pytest.raises(NotIndexable, match="several columns, differing in case, named 'order_id'"):
        DeltaColumn(log, "dw.orders", "order_id")


@pytest.mark.parametrize(
    ("protocol", "configuration", "why"),
    [
        ({}, {"delta.columnMapping.mode": "name"}, "version of the protocol"),
        ({**READER, "readerFeatures": []}, {"delta.columnMapping.mode": "name"}, "of the protocol"),
        ({"minReaderVersion": 2}, {"delta.columnMapping.mode": "name"}, "lacks the delta.columnM"),
        ({}, {"delta.coordinatedCommits.commitCoordinator-preview": "x"}, "coordinated commits"),
        ({**READER, "readerFeatures": ["catalogManaged"]}, {}, "catalog-managed"),
        ({**READER, "readerFeatures": ["future"]}, {}, "future"),
    ],
)
def test_tables_with_other_rules_are_refused(place, protocol, configuration, why):
    features = (
        {"writerFeatures": protocol["readerFeatures"]} if "readerFeatures" in protocol else {}
    )
    changed(place, "protocol", lambda each: each.update(protocol, **features))
    changed(place, "metaData", lambda each: each.update(configuration=configuration))
    with pytest.raises(NotIndexable, match=why):
        column_of(place)


def test_columns_that_are_found_by_ids_are_refused(place):
    mapped(place, {}, mode="id")
    with pytest.raises(NotIndexable, match="mode = 'id'"):
        column_of(place)


def mapped(place, physical, mode="name"):
    """Gives the columns other names than in the files, as Spark does."""
    changed(place, "protocol", lambda each: each.update(minReaderVersion=2, minWriterVersion=5))
    configuration = {"delta.columnMapping.mode": mode}
    changed(place, "metaData", lambda each: each.update(configuration=configuration))

    def named(fields):
        for at, (name, field) in enumerate(fields.items(), 1):
            field["metadata"]["delta.columnMapping.physicalName"] = physical.get(name, name)
            field["metadata"]["delta.columnMapping.id"] = at

    with_schema(place, named)


def test_a_column_has_the_name_of_its_files(root, place):
    """``other`` is called ``order_id`` in the files, and ``order_id`` is not in them."""
    built(root, place)
    before = index_of(root, place)
    with_schema(place, lambda fields: fields["order_id"].update(name="other"))
    mapped(place, {"other": "order_id"})
    assert column_of(place, "other").field_id == "order_id"
    assert built(root, place, "other").new_files == 0
    assert index_of(root, place, "other").parts == before.parts
    with_schema(place, lambda fields: fields["other"].update(name="order_id"))
    mapped(place, {"order_id": "col-1"})
    assert built(root, place).new_keys == 0
    assert index_of(root, place).files == 3
    assert found(root, place, [3]) == set()


def test_only_new_files_are_read(root, place):
    built(root, place)
    assert built(root, place).new_files == 0
    append(place, orders(3, 6))
    summary = built(root, place)
    assert (summary.new_files, summary.files) == (1, 4)
    assert found(root, place, [3]) == holding_by_rows(place, [3])
    assert len(found(root, place, [6])) == 1


def test_only_the_commits_since_the_last_build_are_looked_through(root, place):
    """A file that was left out is not read again, and a version that is not known is no version."""
    add_file(place, "day=2024-01-01/odd.parquet", 3, pa.table({"order_id": [1.5]}))
    why = "its column has the type double, not bigint"
    assert built(root, place).left_out == {why: 1}
    assert built(root, place).left_out == {}
    append(place, orders(8))
    assert (built(root, place).new_files, built(root, place).left_out) == (1, {})
    assert built(root, place, rebuild=True).left_out == {why: 1}
    column = column_of(place)
    assert [len(column.files(since)) for since in (None, 99, 4, 3, 2)] == [5, 5, 0, 1, 2]
    append(place, orders(9))
    DeltaTable(place).create_checkpoint()
    (place / LOG / f"{4:020}.json").unlink()
    assert [len(column_of(place).files(since)) for since in (3, 4)] == [6, 1]


def test_a_file_that_comes_back_is_found(root, place):
    built(root, place)
    write_deltalake(place, orders(7), mode="overwrite")
    built(root, place)
    DeltaTable(place).restore(2)
    assert len(found(root, place, [3])) == 2
    assert built(root, place).new_files == 0
    assert len(found(root, place, [3])) == 2


def test_deleted_rows_leave_the_other_rows_of_their_file(root, place):
    built(root, place)
    DeltaTable(place).delete("order_id = 3")
    built(root, place)
    for keys in ([1], [3], [5]):
        assert found(root, place, keys) == holding_by_rows(place, keys)


VALUES = ("a b", "a%20b", "ü:x", "a+b", "x=y", "q?z", "h#h", "a/b", "{c}", "a%b", "", "a'\"b")


def test_partition_values_with_special_characters(root, tmp_path):
    place = tmp_path / "a b"
    for at, value in enumerate(VALUES):
        append(place, orders(at, 99, day=value))
    assert built(root, place).new_files == len(VALUES)
    for at in range(len(VALUES)):
        assert found(root, place, [at]) == holding_by_rows(place, [at])
    assert len(found(root, place, [99])) == len(paths_of(place)) == len(VALUES)


@pytest.mark.parametrize(
    "path",
    [
        "file:///elsewhere/part-0.parquet",
        "s3://bucket/part-0.parquet",
        "/elsewhere/part-0.parquet",
        "../elsewhere/part-0.parquet",
        "day=a/%2E%2E/../part-0.parquet",
    ],
)
def test_files_outside_the_folder_are_left_out(root, place, path):
    add_file(place, path, 3)
    assert built(root, place).left_out == {"it is outside the table's folder": 1}
    assert len(found(root, place, [99])) == 1


def test_paths_that_are_no_utf_8_are_left_out(root, place):
    """Two of them might look like one."""
    add_file(place, "day=%FF/a.parquet", 3)
    assert built(root, place).left_out == {"its path is no UTF-8": 1}
    assert len(found(root, place, [99])) == 1


@pytest.mark.parametrize("rows", range(1, 12, 2))
def test_files_are_read_to_their_end(root, tmp_path, rows, monkeypatch):
    from airflow_hive_opt.key_index import parquet_keys

    monkeypatch.setattr(parquet_keys, "_ROWS_AT_ONCE", 3)
    append(tmp_path / "t", orders(*range(rows)))
    assert built(root, tmp_path / "t").new_keys == rows


def test_a_table_whose_log_begins_with_a_checkpoint(root, place):
    DeltaTable(place).create_checkpoint()
    append(place, orders(6))
    for version in range(3):
        (place / LOG / f"{version:020}.json").rename(place / LOG / f"{version}.gone")
    (place / LOG / f"{2}.gone").rename(place / LOG / f"{2:020}.json")
    assert built(root, place).files == 4
    for keys in ([1], [3], [6]):
        assert found(root, place, keys) == holding_by_rows(place, keys)


def test_a_checkpoint_of_several_parts_counts_if_all_are_there(root, place):
    DeltaTable(place).create_checkpoint()
    append(place, orders(6))
    whole = place / LOG / f"{2:020}.checkpoint.parquet"
    parts = [place / LOG / f"{2:020}.checkpoint.{at:010}.{2:010}.parquet" for at in (1, 2)]
    actions = pq.read_table(whole)
    pq.write_table(actions.slice(0, 2), parts[0])
    whole.unlink()
    (place / LOG / "_last_checkpoint").unlink()
    assert built(root, place).files == 4  # by all commits
    pq.write_table(actions.slice(2), parts[1])
    (place / LOG / f"{1:020}.json").unlink()
    assert built(root, place, rebuild=True).files == 4


def test_a_log_with_a_gap_is_an_error(place):
    append(place, orders(6))
    (place / LOG / f"{2:020}.json").unlink()
    with pytest.raises(
        IndexingError, match="can't read the log of dw.orders: .* has gaps"
    ) as error:
        column_of(place)
    assert not isinstance(error.value, NotIndexable)


def test_a_log_without_its_first_files_is_an_error(place):
    """deltalake would read the files since the commit that has the schema."""
    first, second = (place / LOG / f"{version:020}.json" for version in range(2))
    schema = [line for line in first.read_text().splitlines() if '"add"' not in line]
    second.write_text("\n".join([*schema, second.read_text()]))
    first.unlink()
    with pytest.raises(IndexingError, match="has gaps"):
        column_of(place)


def test_what_is_no_table_is_an_error(tmp_path):
    with pytest.raises(IndexingError, match="there is no log in"):
        read_log("dw.nothing", UPath(tmp_path))


def test_a_missing_data_file_fails_the_build_and_keeps_the_index(root, place):
    built(root, place)
    before, paths = index_of(root, place), paths_of(place)
    append(place, orders(6))
    (path,) = paths_of(place) - paths
    Path(place, path).unlink()
    with pytest.raises(IndexingError, match=f"can't read {path} of dw.orders"):
        built(root, place)
    assert index_of(root, place) == before


def test_a_broken_commit_fails_the_build(root, place):
    built(root, place)
    append(place, orders(6))
    column = column_of(place)
    (place / LOG / f"{3:020}.json").write_text("{")
    with pytest.raises(IndexingError, match="can't list the data files of dw.orders"):
        column.files(2)


def test_files_that_left_the_log_are_forgotten(root, place, monkeypatch):
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", 2)
    for at in range(6):
        write_deltalake(place, orders(1, at), mode="overwrite")
        built(root, place)
    assert index_of(root, place).files > 3  # a RESTORE may bring them back
    before = column_of(place).paths_of_all_snapshots()
    DeltaTable(place).create_checkpoint()
    for version in range(8):
        (place / LOG / f"{version:020}.json").unlink()
    assert paths_of(place) < column_of(place).paths_of_all_snapshots() < before
    for at in range(6):
        append(place, orders(at))
        built(root, place)
    assert index_of(root, place).files < 10
    for keys in ([0], [1], [5]):
        assert found(root, place, keys) == holding_by_rows(place, keys)


@pytest.mark.parametrize(
    ("by", "rows", "is_usable"),
    [
        (["day"], {}, True),
        (["n"], {"n": pa.array([1], pa.int16())}, True),
        (["n"], {"n": pa.array([date(2024, 1, 1)])}, True),
        (["n", "day"], {"n": [True]}, True),
        (["n"], {"n": [True]}, False),
        (["n"], {"n": pa.array([1.5])}, False),
        ([], {}, False),
    ],
)
def test_a_table_without_such_partitions_has_no_use_for_an_index(tmp_path, by, rows, is_usable):
    write_deltalake(tmp_path / "t", orders(1, **rows), partition_by=by)
    assert (column_of(tmp_path / "t").why_unused == "") is is_usable


def test_an_index_on_object_storage(place):
    root = UPath("memory://delta-indexes")
    assert built(root, place).new_files == 3
    append(place, orders(3))
    assert built(root, place).new_files == 1
    assert found(root, place, [3]) == holding_by_rows(place, [3])


def test_a_table_on_object_storage(root, place):
    import fsspec

    fsspec.filesystem("memory").put(f"{place}/", "/lake/orders/", recursive=True)
    there = UPath("memory://lake/orders")
    assert built(root, there).new_files == 3
    assert found_at(root, place, there, [3]) == holding_by_rows(place, [3])


def found_at(root, place, there, keys):
    from airflow_hive_opt.key_index.lookup import files_holding
    from airflow_hive_opt.key_index.manifest import read_index

    of = column_of(there)
    result = files_holding(root, read_index(root, of.table_uuid, of.field_id), keys)
    assert result.covered == paths_of(place)
    return result.holding
