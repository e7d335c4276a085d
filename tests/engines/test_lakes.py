"""PyIceberg and delta-rs read, merge and delete by a list of keys; the files opened are counted."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from airflow_hive_opt.engines import delta, iceberg
from airflow_hive_opt.engines.scan import EngineError
from tests.engines.lake_scans import filter_on, lake_scan
from tests.engines.opened import opened

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

START = datetime(2024, 3, 31, tzinfo=timezone.utc)
COLUMNS = {
    "Day": ("date", pa.date32(), [date(2024, 1, 1) + timedelta(at) for at in range(8)]),
    "at": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        [START + timedelta(hours=at) for at in range(8)],
    ),
    "m": ("decimal(5,2)", pa.decimal128(5, 2), [Decimal(at).scaleb(-2) for at in range(8)]),
    "s": ("string", pa.string(), ["it's", "a/b", "100%", "b\\s", "é", 'd"q', " ", "A"]),
    "l": ("bigint", pa.int64(), [2**40 + at for at in range(8)]),
    "i": ("int", pa.int32(), list(range(-4, 4))),
    "b": ("boolean", pa.bool_(), [True, False] * 4),
}


def rows_by(column):
    """Rows with each value of a column twice, and with NULL."""
    _, type_, values = COLUMNS[column]
    every = [*values, *values, None]
    return pa.table({"id": list(range(len(every))), column: pa.array(every, type_)})


def iceberg_table(tmp_path, rows, partitioned_by):
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("lake", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("dw")
    table = catalog.create_table("dw.sales", rows.schema)
    with table.update_spec() as spec:
        spec.add_identity(partitioned_by)
    table.append(rows)
    return table


def delta_table(tmp_path, rows, partitioned_by):
    deltalake.write_deltalake(str(tmp_path), rows, partition_by=[partitioned_by])
    return deltalake.DeltaTable(str(tmp_path))


def ids_by_iceberg(table, condition):
    return table.scan(row_filter=condition).to_arrow()["id"].to_pylist()


def ids_by_delta(table, predicate):
    return pa.table(table.scan(columns=["id"], predicate=predicate))["id"].to_pylist()


def ids_by_dataset(table, predicate):
    found = table.to_pyarrow_dataset(file_pruning_predicate=predicate)
    return found.to_table()["id"].to_pylist()


# How to make a table, how to make the engine's condition, and how to read by it.
READERS = {
    "iceberg": (iceberg_table, iceberg.row_filter, ids_by_iceberg),
    "delta": (delta_table, delta.predicate, ids_by_delta),
    "delta dataset": (delta_table, delta.predicate, ids_by_dataset),
}
every_reader = pytest.mark.parametrize("reader", READERS)


@every_reader
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("form", ["values", "ranges", "no keys"])
def test_rows_and_files_by_keys(tmp_path, reader, column, form):
    type_, _, values = COLUMNS[column]
    values = sorted(set(values))
    kept = {"values": [values[0], values[-1]], "ranges": values[:2], "no keys": []}[form]
    scan = lake_scan(filter_on(column.lower(), type_, kept, form == "ranges"))
    rows = rows_by(column)
    make, condition_of, read = READERS[reader]
    table = make(tmp_path, rows, column)
    condition = condition_of(scan, table)
    with opened(tmp_path) as files:
        found = read(table, condition)
    expected = [row["id"] for row in rows.to_pylist() if row[column] in kept]
    assert sorted(found) == expected
    assert len(files) == len(kept)  # a file a partition


@every_reader
def test_keys_of_another_type_are_refused(tmp_path, reader):
    make, condition_of, _ = READERS[reader]
    scan = lake_scan(filter_on("day", "string", ["2024-01-01"]))
    with pytest.raises(
        EngineError, match=r"its column Day is a date, and the keys were of type string$"
    ):
        condition_of(scan, make(tmp_path, rows_by("Day"), "Day"))


@every_reader
def test_keys_of_a_column_that_is_not_there_are_refused(tmp_path, reader):
    make, condition_of, _ = READERS[reader]
    scan = lake_scan(filter_on("hour", "int", [1]))
    with pytest.raises(EngineError, match=r"^the table lake.dw.sales has no column hour$"):
        condition_of(scan, make(tmp_path, rows_by("Day"), "Day"))


DAYS = COLUMNS["Day"][2]
SALES = pa.table(
    {"id": list(range(32)), "day": pa.array(DAYS * 4, pa.date32()), "price": [0] * 31 + [None]}
)
# an update of two rows, a new row on a day, and a row without a day
CHANGES = pa.table(
    {
        "price": [5, 6, 7, 8],
        "id": [0, 9, 99, 100],
        "day": pa.array([DAYS[0], DAYS[1], DAYS[1], None], pa.date32()),
    }
)
MERGED = sorted(
    [row for row in SALES.to_pylist() if row["id"] not in (0, 9)]
    + [{name: row[name] for name in SALES.column_names} for row in CHANGES.to_pylist()],
    key=lambda row: row["id"],
)
ON_DAYS = lake_scan(filter_on("day", "date", DAYS[:2]))


def in_order(table):
    return table.sort_by("id").to_pylist()


def test_an_upsert_of_pyiceberg_reads_the_days_of_the_keys(tmp_path):
    table = iceberg_table(tmp_path, SALES, "day")
    with opened(tmp_path) as files:
        iceberg.upsert(table, CHANGES, ["id", "day"], ON_DAYS)
    read = {path.rpartition("/")[0] for path in files}
    assert {path.rpartition("day=")[2] for path in read} == {str(DAYS[0]), str(DAYS[1])}
    assert in_order(table.scan().to_arrow()) == MERGED
    iceberg.upsert(table, CHANGES, ["id", "day"], ON_DAYS)
    assert len(table.scan().to_arrow()) == len(MERGED) + 1  # NULL equals nothing


def test_a_merge_of_delta_reads_the_days_of_the_keys(tmp_path):
    table = delta_table(tmp_path, SALES, "day")
    predicate = delta.merge_predicate("t.id = s.id AND t.day = s.day", ON_DAYS, table, CHANGES, "t")
    merge = table.merge(CHANGES, predicate, source_alias="s", target_alias="t")
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done["num_target_files_scanned"], done["num_target_files_removed"]) == (2, 2)
    assert in_order(table.to_pyarrow_table()) == MERGED


def test_a_delete_of_delta_and_of_pyiceberg(tmp_path):
    kept = sorted(row["id"] for row in SALES.to_pylist() if row["day"] not in DAYS[:2])
    of_delta = delta_table(tmp_path / "delta", SALES, "day")
    of_delta.delete(delta.predicate(ON_DAYS, of_delta))
    of_iceberg = iceberg_table(tmp_path / "iceberg", SALES, "day")
    of_iceberg.delete(iceberg.row_filter(ON_DAYS, of_iceberg))
    for found in (of_delta.to_pyarrow_table(), of_iceberg.scan().to_arrow()):
        assert sorted(found["id"].to_pylist()) == kept


@pytest.mark.parametrize("form", ["values", "ranges"])
def test_rows_with_other_keys_are_not_merged(tmp_path, form):
    other = pa.table({"price": [1], "id": [1], "day": pa.array([DAYS[5]], pa.date32())})
    scan = lake_scan(filter_on("day", "date", DAYS[:2], form == "ranges"))
    message = r"^the rows to merge have day = 2024-01-06, which was no key of lake.dw.sales when"
    table = iceberg_table(tmp_path / "iceberg", SALES, "day")
    with pytest.raises(EngineError, match=message):
        iceberg.upsert(table, other, ["id", "day"], scan)
    assert in_order(table.scan().to_arrow()) == SALES.to_pylist()
    with pytest.raises(EngineError, match=message):
        delta.merge_predicate("t.id = s.id", scan, delta_table(tmp_path, SALES, "day"), other, "t")


def test_rows_that_equal_each_other_are_not_merged(tmp_path):
    table = iceberg_table(tmp_path, SALES, "day")
    twice = pa.concat_tables([CHANGES.slice(0, 1)] * 2)
    with pytest.raises(EngineError, match=r"^rows to merge into .* equal each other in id, day$"):
        iceberg.upsert(table, twice, ["id", "day"], ON_DAYS)
    assert in_order(table.scan().to_arrow()) == SALES.to_pylist()
