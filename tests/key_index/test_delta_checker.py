"""The checker finds wrong indexes of Delta tables, and wrong conditions by them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")  # environments of other versions do not have it

from deltalake import DeltaTable, write_deltalake
from upath import UPath

from airflow_hive_opt.commands.main import main
from airflow_hive_opt.key_index.checked_tables import CheckedDelta
from airflow_hive_opt.key_index.checker import (
    NotCheckedError,
    problems_of_descriptor,
    problems_of_index,
)
from airflow_hive_opt.key_index.manifest import folder_of, write_index
from airflow_hive_opt.key_index.part import write_part
from tests.key_index.delta_tables import add_file, append, built, index_of, orders

SCAN = {"start": 7, "end": 20, "table": "dw.orders"}


@pytest.fixture
def place(tmp_path):
    """Two days, and rows without a day; ``due`` is another day."""
    made = tmp_path / "orders"
    due = [date(2024, 1, 1), date(2024, 1, 2), None]
    append(made, orders(1, 2, 3, due=pa.array(due), code=["a", "b", None]))
    append(made, orders(3, 4, 4, day="ü b", due=pa.array(due), code=["c", "ü", "a"]))
    append(made, orders(5, day=None, due=pa.array([None], pa.date32()), code=["x"]))
    return made


def problems(place, root, column="order_id"):
    return problems_of_index(CheckedDelta(UPath(place)), column, root)


@pytest.mark.parametrize("column", ["order_id", "due", "CODE"])
def test_a_right_index_has_no_problem(root, place, column):
    built(root, place, column)
    assert problems(place, root, column) == []
    append(place, orders(9, due=pa.array([None], pa.date32()), code=["a"]))
    assert problems(place, root, column) == []
    write_deltalake(place, orders(4, code=["a"]), mode="overwrite", schema_mode="overwrite")
    if column != "due":
        assert problems(place, root, column) == []


def rewritten(root, place, change, column="order_id"):
    """Replaces the only part by one with other pairs, with right digests."""
    index = index_of(root, place, column)
    folder = folder_of(root, index.table_uuid, index.field_id)
    (part,) = index.parts
    held = part.open_pairs(folder).read()
    pairs = sorted(change(held.to_pylist()), key=lambda pair: pair["key"])
    made = write_part(
        folder,
        pa.array([pair["key"] for pair in pairs], held.schema.field("key").type),
        pa.array([pair["file"] for pair in pairs], pa.uint32()),
        part.read_paths(folder),
    )
    write_index(root, replace(index, parts=(made,)))


@pytest.mark.parametrize("column", ["order_id", "due", "code"])
def test_each_lost_pair_is_found(root, place, column):
    number = built(root, place, column).keys
    assert number >= 4
    for lost in range(number):
        built(root, place, column, rebuild=True)
        rewritten(root, place, lambda pairs, at=lost: pairs[:at] + pairs[at + 1 :], column)
        (problem,) = problems(place, root, column)
        assert "holds the key" in problem


def descriptor(tmp_path, keys, *filters, version=2, **use):
    """A document with the fields of a descriptor that the checker reads."""
    key_filter = {"scan": SCAN, "column": "order_id", "values": keys, "is_range": False}
    own = str(DeltaTable(tmp_path / "orders").metadata().id)
    used = {"scan": SCAN, "column": "ORDER_ID", "code": "USED", "snapshot": str(version)}
    document = {
        "row_filters": [key_filter],
        "index_filters": [{"scan": SCAN, "is_range": False, **each} for each in filters],
        "index_uses": [{**used, "table_id": own, **use}],
    }
    path = tmp_path / "descriptor.json"
    path.write_text(json.dumps(document))
    return path


def by_day(*days, **others):
    return {"column": "Day", "values": list(days), **others}


@pytest.mark.parametrize(
    ("keys", "filters", "lost"),
    [
        (["1"], [by_day("2024-01-01")], 0),
        (["1"], [by_day("2024-01-02")], 1),
        (["1"], [by_day()], 1),
        (["1", "4"], [by_day("2024-01-01", "ü b")], 0),
        (["1", "4"], [by_day("2024-01-01")], 1),
        (["3"], [by_day("ü b")], 1),
        (["5"], [by_day("ü b")], 1),
        (["5"], [by_day("ü b", or_null=True)], 0),
        (["4"], [by_day("ü b"), {"column": "due", "values": ["2024-01-02"]}], 1),
        (["1", "2"], [{"column": "due", "values": ["2023-12-30", "2024-01-05"]}], 1),
        (["7"], [by_day()], 0),
    ],
)
def test_rows_that_conditions_exclude_are_found(tmp_path, place, keys, filters, lost):
    table = CheckedDelta(UPath(place))
    path = descriptor(tmp_path, keys, *filters)
    assert len(problems_of_descriptor(table, "order_id", path)) == lost


def test_the_version_is_the_one_that_was_read(tmp_path, place):
    table = CheckedDelta(UPath(place))
    path = descriptor(tmp_path, ["4"], by_day("2024-01-01"), version=0)
    assert problems_of_descriptor(table, "order_id", path) == []
    path = descriptor(tmp_path, ["4"], by_day("2024-01-01"), version=1)
    assert len(problems_of_descriptor(table, "order_id", path)) == 1
    DeltaTable(place).delete("order_id = 4")
    assert len(problems_of_descriptor(table, "order_id", path)) == 1


def test_a_file_without_the_column_has_no_row_with_a_key(tmp_path, place):
    add_file(place, "odd.parquet", 3, pa.table({"code": ["a"]}))
    path = descriptor(tmp_path, ["1"], by_day("2024-01-01"), version=3)
    assert problems_of_descriptor(CheckedDelta(UPath(place)), "order_id", path) == []


@pytest.mark.parametrize(
    "use", [{"snapshot": "7"}, {"snapshot": "x"}, {"code": "UNKNOWN"}, {"table_id": "of another"}]
)
def test_what_can_not_be_checked_is_no_proof(tmp_path, place, use):
    with pytest.raises(NotCheckedError):
        path = descriptor(tmp_path, ["1"], by_day(), **use)
        problems_of_descriptor(CheckedDelta(UPath(place)), "order_id", path)


def test_the_scan_of_another_table_with_the_same_version_is_not_checked(tmp_path, place):
    path = descriptor(tmp_path, ["4"], by_day("2024-01-01"))
    document = json.loads(path.read_text())
    (use,) = document["index_uses"]
    scan = {**SCAN, "start": 30, "table": "dw.other"}
    document["index_uses"].append({**use, "scan": scan, "table_id": "of another"})
    path.write_text(json.dumps(document))
    (problem,) = problems_of_descriptor(CheckedDelta(UPath(place)), "order_id", path)
    assert "exclude" in problem


@pytest.mark.parametrize("text", ["{}", "{}/", "file://{}", "delta.`{}`"])
def test_the_commands(tmp_path, root, place, capsys, text):
    called = text.format(place), "order_id", "--index-path", str(root)
    assert main(["key-index", "check", *called]) == 2
    assert "there is no file" in capsys.readouterr().err
    assert main(["key-index", "build", *called]) == 0
    assert json.loads(capsys.readouterr().out)["new_files"] == 3
    assert main(["key-index", "check", *called]) == 0
    path = descriptor(tmp_path, ["1"], by_day("2024-01-02"))
    assert main(["key-index", "check", *called, "--descriptor", str(path)]) == 1
    assert "1 rows with keys of ORDER_ID that the conditions on Day" in capsys.readouterr().out
    rewritten(root, place, lambda pairs: pairs[1:])
    assert main(["key-index", "check", *called]) == 1
    assert capsys.readouterr().err == "1 problems\n"
    assert main(["key-index", "list", "--index-path", str(root)]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["table"], listed["column"], listed["type"]) == (called[0], "order_id", "bigint")


def test_wrong_arguments_are_errors(root, place, capsys, monkeypatch):
    options = "--index-path", str(root)
    assert main(["key-index", "build", str(place), "price", *options]) == 2
    assert "has no column 'price'" in capsys.readouterr().err
    assert main(["key-index", "check", str(place), "price", *options]) == 2
    assert "has no column price" in capsys.readouterr().err
    write_deltalake(place.parent / "plain", orders(1))
    assert main(["key-index", "build", str(place.parent / "plain"), "order_id", *options]) == 0
    assert "warning: no statement can use the index" in capsys.readouterr().err
    (place / "_delta_log" / f"{1:020}.json").unlink()
    assert main(["key-index", "build", str(place), "order_id", *options]) == 1
    assert "has gaps" in capsys.readouterr().err
    module = "airflow_hive_opt.key_index.delta_log.find_spec"
    monkeypatch.setattr(module, lambda name: None if name == "deltalake" else name)
    assert main(["key-index", "build", str(place), "order_id", *options]) == 2
    assert "pip install 'airflow-hive-opt[delta]'" in capsys.readouterr().err
