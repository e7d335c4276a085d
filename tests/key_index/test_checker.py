"""The checker finds wrong indexes and wrong conditions; right ones have no problem."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest
from upath import UPath

from airflow_hive_opt.commands.main import main
from airflow_hive_opt.key_index.checker import (
    NotCheckedError,
    problems_of_descriptor,
    problems_of_index,
)
from airflow_hive_opt.key_index.manifest import KeyIndex, folder_of, write_index
from airflow_hive_opt.key_index.part import write_part
from tests.key_index.tables import built, index_of, orders

SCAN = {"start": 7, "end": 20}


@pytest.fixture
def table(catalog):
    days = pa.array([date(2024, 1, 1), date(2024, 1, 2), None], pa.date32())
    rows = orders(1, 2, 3, day=days, code=["a", "b", None])
    made = catalog.create_table("dw.orders", rows.schema)
    made.append(rows)
    made.append(orders(3, 4, 4, day=days, code=["c", "ü", "a"]))
    return made


@pytest.mark.parametrize("column", ["order_id", "day", "code"])
def test_a_right_index_has_no_problem(root, table, column):
    built(root, table, column)
    assert problems_of_index(table, column, root) == []
    table.append(orders(9, day=pa.array([None], pa.date32()), code=["a"]))
    assert problems_of_index(table, column, root) == []
    table.overwrite(orders(4, day=pa.array([None], pa.date32()), code=["a"]))
    assert problems_of_index(table, column, root) == []


def rewritten(root, table, change):
    """Replaces the only part by one with other pairs, with right digests."""
    index = index_of(root, table)
    folder = folder_of(root, index.table_uuid, index.field_id)
    (part,) = index.parts
    pairs = part.open_pairs(folder).read().to_pylist()
    pairs = sorted(change(pairs), key=lambda pair: pair["key"])
    made = write_part(
        folder,
        pa.array([pair["key"] for pair in pairs], pa.int64()),
        pa.array([pair["file"] for pair in pairs], pa.uint32()),
        part.read_paths(folder),
    )
    write_index(root, replace(index, parts=(made,)))


@pytest.mark.parametrize("lost", range(5))
def test_each_lost_pair_is_found(root, table, lost):
    built(root, table)
    rewritten(root, table, lambda pairs: pairs[:lost] + pairs[lost + 1 :])
    (problem,) = problems_of_index(table, "order_id", root)
    assert "holds the key" in problem


def test_keys_of_other_files_are_found(root, table):
    built(root, table)
    swap = {0: 1, 1: 0}
    rewritten(root, table, lambda pairs: [{**pair, "file": swap[pair["file"]]} for pair in pairs])
    assert len(problems_of_index(table, "order_id", root)) == 2


def test_too_many_pairs_are_no_problem(root, table):
    built(root, table)
    rewritten(root, table, lambda pairs: [*pairs, {"key": 99, "file": 0}])
    assert problems_of_index(table, "order_id", root) == []


def descriptor(tmp_path, table, keys, *filters, code="USED", is_range=False):
    """A document with the fields of a descriptor that the checker reads."""
    key_filter = {"scan": SCAN, "column": "order_id", "values": keys, "is_range": is_range}
    snapshot = str(table.refresh().current_snapshot().snapshot_id)
    use = {"scan": SCAN, "column": "ORDER_ID", "code": code, "snapshot": snapshot}
    document = {
        "row_filters": [key_filter, {**key_filter, "scan": {"start": 1}, "values": []}],
        "index_filters": [{"scan": SCAN, "is_range": False, **each} for each in filters],
        "index_uses": [use],
    }
    path = tmp_path / "descriptor.json"
    path.write_text(json.dumps(document))
    return path


def by_day(*days, **others):
    return {"column": "day", "values": list(days), **others}


@pytest.mark.parametrize(
    ("keys", "filters", "lost"),
    [
        (["1"], [by_day("2024-01-01")], 0),
        (["1"], [by_day("2024-01-02")], 1),
        (["1"], [by_day()], 1),
        (["1", "4"], [by_day("2024-01-01", "2024-01-02", or_null=True)], 0),
        (["1", "4"], [by_day("2024-01-01", "2024-01-02")], 1),
        (["1", "2"], [by_day("2023-12-30", "2024-01-05", is_range=True)], 0),
        (["1", "2"], [by_day("2024-01-02", "2024-01-05", is_range=True)], 1),
        (["3"], [by_day("2024-01-01", or_null=True)], 0),
        (["3"], [by_day("2024-01-01")], 1),
        (["4"], [by_day("2024-01-02", or_null=True), {"column": "code", "values": ["ü"]}], 1),
        (["4"], [{"column": "code", "values": ["ü", "a"]}], 0),
        (["7"], [by_day()], 0),
    ],
)
def test_rows_that_conditions_exclude_are_found(tmp_path, table, keys, filters, lost):
    path = descriptor(tmp_path, table, keys, *filters)
    assert len(problems_of_descriptor(table, "order_id", path)) == lost


def test_keys_may_be_in_a_guard_or_be_ranges_of_one_value(tmp_path, table):
    guard = {"column": "order_id", "values": ["1"], "guards_only": True}
    for filters, lost in (([by_day("2024-01-01")], 0), ([by_day()], 1)):
        path = descriptor(tmp_path, table, ["1", "9"], *filters, guard, is_range=True)
        assert len(problems_of_descriptor(table, "order_id", path)) == lost
        path = descriptor(tmp_path, table, ["1", "1", "9", "9"], *filters, is_range=True)
        assert len(problems_of_descriptor(table, "order_id", path)) == lost


@pytest.mark.parametrize("options", [{"code": "NO_BRANCH"}, {"is_range": True}])
def test_what_can_not_be_checked_is_no_proof(tmp_path, table, options):
    path = descriptor(tmp_path, table, ["1", "2"], by_day(), **options)
    with pytest.raises(NotCheckedError):
        problems_of_descriptor(table, "order_id", path)


@pytest.fixture
def options(properties, root):
    given = [word for each in properties.items() for word in ("--property", "=".join(each))]
    return ["--index-path", str(root), *given]


def test_the_commands(tmp_path, root, table, options, capsys):
    called = "lake.dw.orders", "order_id", *options
    assert main(["key-index", "check", *called]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert main(["key-index", "build", *called]) == 0
    assert json.loads(capsys.readouterr().out)["new_files"] == 2
    assert main(["key-index", "check", *called]) == 0
    path = descriptor(tmp_path, table, ["1"], by_day("2024-01-02"))
    assert main(["key-index", "check", *called, "--descriptor", str(path)]) == 1
    assert "1 rows with keys of ORDER_ID that the conditions on day" in capsys.readouterr().out
    rewritten(root, table, lambda pairs: pairs[1:])
    assert main(["key-index", "check", *called]) == 1
    assert capsys.readouterr().err == "1 problems\n"
    assert main(["key-index", "build", "--rebuild", *called]) == 0
    assert main(["key-index", "check", *called]) == 0


def test_the_list_of_indexes(tmp_path, root, table, options, capsys):
    listed = ["key-index", "list", *options[:2]]
    assert main(["key-index", "list", "--index-path", str(tmp_path / "nothing")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    root.mkdir(parents=True, exist_ok=True)
    (root / "other").write_text("no index")
    assert main(listed) == 0
    assert capsys.readouterr() == ("", "0 indexes, 0 damaged\n")
    assert main(["key-index", "build", "lake.dw.orders", "order_id", *options]) == 0
    built = json.loads(capsys.readouterr().out)
    assert main(listed) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("files", "keys", "bytes")} == {
        name: built[name] for name in ("files", "keys", "bytes")
    }
    assert (found["table"], found["column"], found["type"]) == (
        "lake.dw.orders",
        "order_id",
        "bigint",
    )
    manifest = UPath(found["folder"]) / "manifest.json"
    manifest.write_text(manifest.read_text().replace("order_id", "other_id"))
    other = root / "another" / "x" / "manifest.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    assert main(listed) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("error: "), err.splitlines()[-1]) == ("", 2, "0 indexes, 2 damaged")
    assert f"error: {other.parent}: " in err


def test_indexes_on_an_object_store_are_listed(capsys):
    root = UPath("memory://listed/indexes")
    write_index(root, KeyIndex("6f1c", "lake.dw.orders", "3", "order_id", "bigint", ()))
    assert main(["key-index", "list", "--index-path", str(root)]) == 0
    assert json.loads(capsys.readouterr().out)["table"] == "lake.dw.orders"


@pytest.mark.parametrize(
    ("table_", "column", "error"),
    [
        ("lake.dw.nothing", "order_id", "the catalog has no Iceberg table lake.dw.nothing"),
        ("lake.dw.orders", "price", "has no column 'price'"),
        ("/no/folder", "order_id", "there is no version of /no/folder"),
    ],
)
def test_wrong_arguments_are_errors(table, options, capsys, table_, column, error):
    assert main(["key-index", "build", table_, column, *options]) == 2
    assert error in capsys.readouterr().err
