"""Damaged, absent and foreign files of an index: readers raise errors, builders repair it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index import tidying
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import folder_of, read_index, write_index
from airflow_hive_opt.key_index.part import write_part
from tests.key_index.tables import (
    built,
    column_of,
    found,
    holding_by_rows,
    index_of,
    orders,
    paths_of,
)


@pytest.fixture
def table(catalog):
    made = catalog.create_table("dw.orders", orders(1).schema)
    for keys in ((1, 2, 3), (3, 4, 5)):
        made.append(orders(*keys))
    return made


@pytest.fixture
def folder(root, table):
    built(root, table)
    of = column_of(table)
    return Path(str(folder_of(root, of.table_uuid, of.field_id)))


def file_of(folder, kind):
    (found,) = [
        path
        for path in folder.iterdir()
        if kind == ("manifest" if path.suffix == ".json" else len(path.suffixes))
    ]
    return found


def truncated(data):
    return data[:-3]


def altered(data):
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def doubled(data):
    return data + data


@pytest.mark.parametrize("kind", ["manifest", 1, 2], ids=["manifest", "pairs", "files"])
@pytest.mark.parametrize("damage", [truncated, altered, doubled, lambda _: b"", lambda _: b"PAR1"])
def test_a_damaged_file_is_refused_and_built_again(root, table, folder, kind, damage):
    path = file_of(folder, kind)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DescriptorError):
        found(root, table, [3])
    summary = built(root, table)
    if (kind, damage) == (1, altered):  # builders compare its size, readers its content
        assert summary.new_files == 0
        summary = built(root, table, rebuild=True)
    assert summary.new_files == summary.files == 2
    assert found(root, table, [4]) == holding_by_rows(table, [4])


def test_an_altered_part_is_found_when_parts_are_merged(root, table, folder, monkeypatch):
    path = file_of(folder, 1)
    path.write_bytes(altered(path.read_bytes()))
    assert built(root, table).new_files == 0
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", 0)
    assert built(root, table).new_files == 2
    assert found(root, table, [4]) == holding_by_rows(table, [4])


@pytest.mark.parametrize("kind", [1, 2], ids=["pairs", "files"])
def test_an_absent_part_is_refused_and_built_again(root, table, folder, kind):
    file_of(folder, kind).unlink()
    with pytest.raises(DescriptorError, match="there is no such file"):
        found(root, table, [3])
    assert built(root, table).new_files == 2
    assert found(root, table, [4]) == holding_by_rows(table, [4])


def test_an_absent_manifest_is_no_index(root, table, folder):
    file_of(folder, "manifest").unlink()
    assert index_of(root, table) is None
    assert built(root, table).new_files == 2


def test_a_manifest_of_another_version_is_refused(root, table, folder):
    path = file_of(folder, "manifest")
    document = json.loads(path.read_text())
    document["version"] = 99
    path.write_text(json.dumps(document))
    with pytest.raises(DescriptorError, match=r"version is 99.*[Dd]elete the index's folder"):
        index_of(root, table)


def test_the_index_of_another_table_is_refused(root, table, folder, catalog):
    other = catalog.create_table("dw.other", orders(1).schema)
    of = column_of(other)
    shutil.copytree(folder, Path(str(folder_of(root, of.table_uuid, of.field_id))))
    with pytest.raises(DescriptorError, match="belongs to the column 1 of the table"):
        index_of(root, other)
    other.append(orders(3))
    assert built(root, other).new_files == 1
    assert found(root, other, [3]) == paths_of(other)


@pytest.mark.parametrize("uuid", ["../..", "", "a/b", "x" * 65])
def test_an_odd_uuid_is_refused(root, uuid):
    with pytest.raises(DescriptorError, match="is no UUID"):
        read_index(root, uuid, "1")


def test_a_part_that_names_a_file_that_it_does_not_list_is_refused(root, table, folder):
    """Its digest is right, so a builder has written it."""
    index = index_of(root, table)
    pairs = pq.read_table(file_of(folder, 1))
    part = write_part(
        folder_of(root, index.table_uuid, index.field_id),
        pairs.column("key").combine_chunks(),
        pairs.column("file").combine_chunks(),
        ["one"],
    )
    wrong = replace(index, parts=(part,))
    write_index(root, wrong)
    with pytest.raises(DescriptorError, match="names a file that it does not list"):
        files_holding(root, wrong, [1, 5])


def test_files_that_no_part_uses_are_removed_after_a_day(root, table, folder):
    foreign = folder / "notes.txt"
    foreign.write_text("not the index's")
    orphan = folder / f"part-{'0' * 32}.parquet"
    unfinished = folder / ".hive-opt-00.tmp"
    for path in (orphan, unfinished, foreign):
        path.write_bytes(b"")
    used = file_of(folder, 2)
    built(root, table)
    assert orphan.exists() and unfinished.exists()
    for path in (orphan, unfinished, foreign, used):
        os.utime(path, (1, 1))
    built(root, table)
    assert not orphan.exists() and not unfinished.exists()
    assert foreign.exists() and used.exists()


def test_retired_parts_stay_for_a_day(root, table, folder, monkeypatch):
    before = index_of(root, table)
    used = file_of(folder, 2)
    built(root, table, rebuild=True)
    os.utime(used, (1, 1))
    built(root, table)
    assert files_holding(root, before, [3]).holding == holding_by_rows(table, [3])
    monkeypatch.setattr("airflow_hive_opt.key_index.stored_parts.KEPT", -1)
    built(root, table)
    assert not used.exists()
    assert index_of(root, table).retired == ()
    assert found(root, table, [4]) == holding_by_rows(table, [4])
