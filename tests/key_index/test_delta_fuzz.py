"""Random changes of a Delta table behind its index: no lookup misses a file of a key."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date, timedelta

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")  # environments of other versions do not have it

from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from upath import UPath

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index import batch, building, tidying
from airflow_hive_opt.key_index.checked_tables import CheckedDelta
from airflow_hive_opt.key_index.checker import problems_of_index
from airflow_hive_opt.key_index.manifest import folder_of
from tests.cases import slow_but
from tests.key_index.delta_tables import (
    LOG,
    append,
    built,
    found,
    holding_by_rows,
    index_of,
    paths_of,
)

KEYS = 40
VALUES = {
    "number": lambda at: at - KEYS // 2,
    "narrow": lambda at: at - KEYS // 2,
    "text": lambda at: "" if at == 0 else f"é{at % 7}" * (at % 3) + str(at),
    "due": lambda at: date(2024, 1, 1) + timedelta(at),
}
TYPES = {"number": pa.int64(), "narrow": pa.int16(), "text": pa.string(), "due": pa.date32()}
DAYS = ("2024-01-01", "a b", "ü%", "x:y", None)
STEPS = (
    *(3 * ("append", "build")),
    *("delete", "update", "overwrite", "overwrite_day", "compact", "restore", "vacuum"),
    *("checkpoint", "build_in_vain", "damage"),
)


class Changes:
    """Changes of one table, and of the files of its index."""

    def __init__(self, place, root, column, chance):
        self.place = place
        self.root = root
        self.column = column
        self.chance = chance

    @property
    def table(self):
        return DeltaTable(self.place)

    def some(self, most=8):
        return [VALUES[self.column](at) for at in self.chance.sample(range(KEYS), most)]

    def rows(self):
        values = self.chance.choices([*self.some(), None], k=self.chance.randrange(1, 12))
        days = self.chance.choices(DAYS, k=len(values))
        return pa.table(
            {
                "n": pa.array(range(len(values)), pa.int64()),
                "day": pa.array(days, pa.string()),
                self.column: pa.array(values, TYPES[self.column]),
            }
        )

    def append(self):
        append(self.place, self.rows())

    def delete(self):
        self.table.delete(f"n = {self.chance.randrange(12)}")

    def update(self):
        value = self.some(1)[0]
        literal = f"DATE '{value}'" if isinstance(value, date) else repr(value)
        self.table.update(
            predicate=f"n = {self.chance.randrange(12)}", updates={self.column: literal}
        )

    def overwrite(self):
        write_deltalake(self.place, self.rows(), mode="overwrite", partition_by=["day"])

    def overwrite_day(self):
        rows = self.rows()
        rows = rows.set_column(1, "day", pa.array([DAYS[0]] * len(rows)))
        write_deltalake(self.place, rows, mode="overwrite", predicate=f"day = '{DAYS[0]}'")

    def compact(self):
        self.table.optimize.compact()

    def restore(self):
        with suppress(DeltaError):  # files of the version may be gone
            self.table.restore(self.chance.randrange(self.table.version() + 1))

    def vacuum(self):
        with suppress(DeltaError):
            self.table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def checkpoint(self):
        """It may be the only trace of the commits before."""
        self.table.create_checkpoint()
        if self.chance.random() < 0.5:
            for version in range(self.table.version()):
                (self.place / LOG / f"{version:020}.json").unlink(missing_ok=True)

    def build(self):
        built(self.root, self.place, self.column, rebuild=self.chance.random() < 0.1)
        assert problems_of_index(CheckedDelta(UPath(self.place)), self.column, self.root) == []
        wanted = self.some()
        expected = holding_by_rows(self.place, wanted, self.column)
        assert found(self.root, self.place, wanted, self.column) == expected

    def build_in_vain(self):
        """It writes some parts, and fails then."""
        left = self.chance.randrange(3)

        def write_index(*arguments, of_module=building.write_index):
            nonlocal left
            left -= 1
            if left < 0:
                raise DescriptorError("the disk is full")
            of_module(*arguments)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(building, "write_index", write_index)
            with suppress(DescriptorError):
                built(self.root, self.place, self.column)

    def damage(self):
        index = index_of(self.root, self.place, self.column)
        if index is not None and index.parts:
            part = self.chance.choice(index.parts)
            file = self.chance.choice((part.pairs, part.paths))
            path = folder_of(self.root, index.table_uuid, index.field_id) / file.name
            if self.chance.random() < 0.5:
                path.unlink(missing_ok=True)
            elif path.exists():
                path.write_bytes(path.read_bytes()[: file.size // 2])

    def check(self):
        """The index gives all files of some keys, or an error."""
        if index_of(self.root, self.place, self.column) is None:
            return
        wanted = self.some(3)
        try:
            given = found(self.root, self.place, wanted, self.column)
        except DescriptorError:
            return
        assert given >= holding_by_rows(self.place, wanted, self.column)


@pytest.mark.parametrize("seed", slow_but(range(40), 0, 1, 2))
def test_random_changes(root, tmp_path, seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(batch, "MOST_BYTES", chance.choice([1, 200, batch.MOST_BYTES]))
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", chance.choice([2, 16]))
    column = chance.choice(list(VALUES))
    changes = Changes(tmp_path / "changing", root, column, chance)
    changes.append()
    for _ in range(25):
        getattr(changes, chance.choice(STEPS))()
        changes.check()
    changes.build()
    assert paths_of(changes.place) or not holding_by_rows(changes.place, changes.some(), column)
