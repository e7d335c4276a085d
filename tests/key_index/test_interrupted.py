"""Builders whose writes fail, and two builders at once: no reader ever misses a file."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor

import pytest
from upath import UPath

from airflow_hive_opt.documents import format as documents_format
from airflow_hive_opt.documents.storage import DescriptorError, write_atomically
from airflow_hive_opt.key_index import batch, building, part, tidying
from tests.key_index.tables import (
    built,
    column_of,
    found,
    holding_by_rows,
    index_of,
    orders,
    paths_of,
)
from tests.services.disk import fill, small_disk

KEYS = ([1], [3], [5], [9])


@pytest.fixture(autouse=True)
def parts_of_one_file(monkeypatch):
    monkeypatch.setattr(batch, "MOST_BYTES", 1)
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", 3)


@pytest.fixture
def table(catalog):
    made = catalog.create_table("dw.orders", orders(1).schema)
    for keys in ((1, 2, 3), (3, 4, 5), (5, 9)):
        made.append(orders(*keys))
    return made


def nothing_is_missed(root, table):
    for keys in KEYS:
        if index_of(root, table) is not None:
            assert found(root, table, keys) >= holding_by_rows(table, keys)


def nothing_is_missed_or_more(root, table):
    for keys in KEYS:
        assert found(root, table, keys) == holding_by_rows(table, keys)


class FailingWrites:
    """Fails the write number ``at``; a write before it may be complete."""

    def __init__(self, at, after):
        self.left = at
        self.after = after

    def __call__(self, data, path):
        self.left -= 1
        if self.left or self.after:
            write_atomically(data, path)
        if not self.left:
            raise DescriptorError(f"can't write {path}: {OSError(errno.ENOSPC, 'no space left')}")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_write_that_fails(root, table, monkeypatch, after):
    """Each of them, in a first build, in an update and in one that merges parts."""
    for _ in range(3):
        for at in range(1, 30):
            writes = FailingWrites(at, after)
            with monkeypatch.context() as patched:
                patched.setattr(part, "write_atomically", writes)
                patched.setattr(documents_format, "write_atomically", writes)
                try:
                    built(root, table)
                except DescriptorError:
                    nothing_is_missed(root, table)
                else:
                    break
        assert writes.left > 0
        nothing_is_missed_or_more(root, table)
        for key in (1, 9):
            table.append(orders(key))
        nothing_is_missed(root, table)


def test_what_a_failed_build_has_finished_stays(root, table, monkeypatch):
    writes = FailingWrites(6, False)  # two files of a part and the manifest each time
    with monkeypatch.context() as patched, pytest.raises(DescriptorError):
        patched.setattr(part, "write_atomically", writes)
        patched.setattr(documents_format, "write_atomically", writes)
        built(root, table)
    assert index_of(root, table).files == 1
    assert built(root, table).new_files == 2


def test_a_builder_during_another_one(root, table, monkeypatch):
    """The second one does all its work before the first one writes its manifest."""
    built(root, table)
    table.append(orders(9))
    inner, of_module = [], building.write_index

    def write_index(*arguments):
        if not inner:
            inner.append(None)
            inner[0] = built(root, table)
        of_module(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(building, "write_index", write_index)
        assert built(root, table).new_files == 1
    assert inner[0].new_files == 1
    nothing_is_missed_or_more(root, table)
    assert built(root, table).new_files == 0
    assert index_of(root, table).files == len(paths_of(table))


def test_a_builder_with_the_manifest_of_before_a_merge(root, table, monkeypatch):
    """The parts that the other builder has merged are still there."""
    built(root, table)
    table.append(orders(9))
    built(root, table)
    inner, of_module = [], building._Builder._batches

    def batches(self, *arguments):
        yield from of_module(self, *arguments)
        if not inner:
            inner.append(None)
            table.append(orders(5))
            built(root, table)

    with monkeypatch.context() as patched:
        patched.setattr(tidying, "MOST_SMALL_PARTS", 100)
        patched.setattr(building._Builder, "_batches", batches)
        table.append(orders(1))
        built(root, table)
    nothing_is_missed(root, table)
    assert built(root, table).new_files == 1
    nothing_is_missed_or_more(root, table)


def test_builders_in_threads(root, table):
    for at in range(10):
        table.append(orders(at))
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            columns = [column_of(table) for _ in range(4)]
            list(threads.map(lambda column: building.build(root, column), columns))
            nothing_is_missed_or_more(root, table)
            table.append(orders(3))


@pytest.mark.faults
def test_a_full_disk(table, tmp_path):
    with small_disk(tmp_path / "disk", kilobytes=256) as disk:
        root = UPath(disk)
        built(root, table)
        before = index_of(root, table)
        table.append(orders(9))
        filler = fill(disk)
        with pytest.raises(DescriptorError, match="No space left"):
            built(root, table)
        assert index_of(root, table) == before
        nothing_is_missed(root, table)
        filler.unlink()
        assert built(root, table).new_files == 1
        nothing_is_missed_or_more(root, table)
