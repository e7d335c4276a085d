"""The parts of a lookup in the key indexes that need no Spark."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.errors import PySparkRuntimeError

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.documents.indexed_scans import IndexCode, IndexUse
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.query import ScanRef
from airflow_hive_opt.spark.catalog.lakes.indexed_format import Identity
from airflow_hive_opt.spark.local_task import data_files
from airflow_hive_opt.spark.local_task.data_files import DataFiles
from airflow_hive_opt.spark.local_task.fixed_snapshots import FixedSnapshot, _may_write
from airflow_hive_opt.spark.local_task.indexed_files import Indexed
from airflow_hive_opt.spark.local_task.value_lists import ValueFilter, joined
from airflow_hive_opt.spark.session.spark_compat import rows_by_arrow
from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Table

SCAN = ScanRef("o", "lake.shop.orders", (5, 9), "o")
APART = tuple(range(0, 3000, 10))  # 300 keys, none beside another


def condition(keys, values, is_range):
    source = SourceKeys(("c",), "changed", "SELECT 1", len(keys))
    made = RowFilter(SCAN, "o", False, "id", "bigint", tuple(map(str, values)), is_range, source)
    return ValueFilter("id", made, tuple(keys))


def ranges(keys):
    return condition(
        keys, [end for range_ in joined([(k, k) for k in keys]) for end in range_], True
    )


def simplified(found, code=IndexCode.USED, unknown=0, is_close=True, column="id"):
    use = IndexUse(SCAN, column, code, "", "7", 5, unknown, 40)
    (after,) = Indexed(uses=(use,), is_close=is_close).simplified([found])
    return after.row_filter


def test_few_ranges_stay_of_a_column_whose_index_has_chosen_the_files():
    found = ranges(APART)
    assert len(found.row_filter.values) == 200
    after = simplified(found)
    low, high = map(int, after.values[::2]), map(int, after.values[1::2])
    both = list(zip(low, high, strict=True))
    assert len(both) == 16
    assert all(any(first <= key <= last for first, last in both) for key in APART)
    assert after.source == found.row_filter.source


@pytest.mark.parametrize(
    "options",
    [
        {"unknown": 1},  # a file that the index does not cover may be excluded by its range alone
        {"is_close": False},
        {"code": IndexCode.MOST_FILES_HOLD_KEYS},
        {"column": "code"},
    ],
)
def test_all_ranges_stay_if_they_may_exclude_files(options):
    found = ranges(APART)
    assert simplified(found, **options) == found.row_filter


@pytest.mark.parametrize("is_range", [False, True])
def test_a_list_of_keys_stays_one(is_range):
    keys = APART[:50]
    values = [end for key in keys for end in (key, key)] if is_range else keys
    found = condition(keys, values, is_range)
    assert simplified(found) == found.row_filter


class Asked:
    """A session that counts its queries; each has ``answer``, or raises it."""

    def __init__(self, answer):
        self.answer, self.queries = answer, []

    def sql(self, text):
        self.queries.append(text)
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(collect=lambda: self.answer)


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setattr(data_files, "in_session", lambda _, function: function)
    table = SimpleNamespace(provider="iceberg", name="lake.shop.orders")
    fixed = FixedSnapshot("7", (), Identity("u", {}))
    return lambda session: DataFiles(session, table, [], fixed)


@pytest.mark.parametrize("begun", [False, True])
def test_the_files_are_read_once(files, begun):
    session = Asked([("a.parquet", 70, "1"), ("b.parquet", 80, None)])
    made = files(session)
    if begun:
        made.begin()
    for _ in range(2):
        assert made.by_path == {"a.parquet": (("1",), 70), "b.parquet": ((None,), 80)}
    (query,) = session.queries
    assert "VERSION AS OF 7" in query


def fails(error):
    def to_arrow():
        raise error

    return to_arrow


@pytest.mark.parametrize("rows", [[], [("a", 1, None), ("b", 2, "x")]])
def test_rows_are_read_by_arrow_or_one_by_one(rows):
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate("abc")})
    by_arrow = SimpleNamespace(toArrow=lambda: table)  # and no other method
    assert rows_by_arrow(by_arrow) == rows
    collected = {"collect": lambda: rows}
    for error in (ImportError("PyArrow >= 18"), PySparkRuntimeError("ARROW_PRE_0_15_IPC_FORMAT")):
        assert rows_by_arrow(SimpleNamespace(toArrow=fails(error), **collected)) == rows
    assert rows_by_arrow(SimpleNamespace(**collected)) == rows  # Spark 3.5


def test_an_error_of_the_thread_is_raised_where_the_files_are_needed(files):
    made = files(Asked(ValueError("no such snapshot")))
    made.begin()
    with pytest.raises(ValueError, match="no such snapshot"):
        _ = made.by_path


ORDERS = Table("lake.ki.orders", (Column("id", "bigint"),), provider="iceberg")
HYPHEN = replace(ORDERS, name="lake.ki.my-orders")
OTHERS = [replace(ORDERS, name=name) for name in ("lake.other.orders", "second.ki.orders")]


@pytest.mark.parametrize(
    ("target", "table", "may"),
    [
        *(("lake.ki.orders", ORDERS, True), ("lake.KI.`Orders`", ORDERS, True)),
        ("lake.ki.`my-orders`", HYPHEN, True),
        ("second.ki.orders", ORDERS, True),  # perhaps the same table in two catalogs
        ("lake.new.orders", ORDERS, True),  # not there yet
        *(("lake.other.orders", ORDERS, False), ("lake.ki.orders", HYPHEN, False)),
    ],
)
def test_what_an_insert_may_write(target, table, may):
    catalog = JsonCatalog.of([ORDERS, HYPHEN, *OTHERS])
    planned = plan(f"INSERT INTO {target} SELECT id FROM lake.ki.orders", catalog)
    # no session is asked about Iceberg
    assert _may_write(None, catalog, planned, table, "") is may
