"""Random changes of a table behind its index: no lookup misses a file, and the checker agrees."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import date, timedelta

import pyarrow as pa
import pytest

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index import batch, building, tidying
from airflow_hive_opt.key_index.checker import problems_of_index
from airflow_hive_opt.key_index.manifest import folder_of
from tests.cases import slow_but
from tests.key_index.tables import built, found, holding_by_rows, index_of, paths_of

KEYS = 40
DAY = date(2024, 1, 1)
VALUES = {
    "number": lambda at: at - KEYS // 2,
    "text": lambda at: "" if at == 0 else f"é{at % 7}" * (at % 3) + str(at),
    "day": lambda at: DAY + timedelta(at),
}
TYPES = {"number": pa.int64(), "text": pa.string(), "day": pa.date32()}

STEPS = (
    *(3 * ("append", "build")),
    *("delete", "overwrite", "compact", "roll_back", "expire", "build_in_vain", "damage"),
)


class Changes:
    """Changes of one table, and of the files of its index."""

    def __init__(self, table, root, column, chance):
        self.table = table
        self.root = root
        self.column = column
        self.chance = chance

    def some(self, most=8):
        return [VALUES[self.column](at) for at in self.chance.sample(range(KEYS), most)]

    def rows(self):
        values = self.chance.choices([*self.some(), None], k=self.chance.randrange(1, 12))
        return pa.table(
            {"n": range(len(values)), self.column: pa.array(values, TYPES[self.column])}
        )

    def append(self):
        self.table.append(self.rows())

    def delete(self):
        self.table.delete(f"n = {self.chance.randrange(12)}")

    def overwrite(self):
        self.table.overwrite(self.rows(), overwrite_filter=f"n < {self.chance.randrange(12)}")

    def compact(self):
        if paths_of(self.table):
            self.table.overwrite(self.table.scan().to_arrow())

    def roll_back(self):
        snapshots = self.table.refresh().history()
        if snapshots:
            chosen = self.chance.choice(snapshots).snapshot_id
            with suppress(ValueError):  # it may be no ancestor of the current one
                self.table.manage_snapshots().rollback_to_snapshot(chosen).commit()

    def expire(self):
        current = self.table.refresh().current_snapshot()
        old = [each.snapshot_id for each in self.table.snapshots() if each != current]
        if old:
            self.table.maintenance.expire_snapshots().by_ids(old).commit()

    def build(self):
        built(self.root, self.table, self.column, rebuild=self.chance.random() < 0.1)
        assert problems_of_index(self.table, self.column, self.root) == []
        wanted = self.some()
        expected = holding_by_rows(self.table, wanted, self.column)
        assert found(self.root, self.table, wanted, self.column) == expected

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
                built(self.root, self.table, self.column)

    def damage(self):
        index = index_of(self.root, self.table, self.column)
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
        if index_of(self.root, self.table, self.column) is None:
            return
        wanted = self.some(3)
        try:
            given = found(self.root, self.table, wanted, self.column)
        except DescriptorError:
            return
        assert given >= holding_by_rows(self.table, wanted, self.column)


@pytest.mark.parametrize("seed", slow_but(range(60), 0, 1, 2))
def test_random_changes(catalog, root, seed, monkeypatch):
    chance = random.Random(seed)
    monkeypatch.setattr(batch, "MOST_BYTES", chance.choice([1, 200, batch.MOST_BYTES]))
    monkeypatch.setattr(tidying, "MOST_SMALL_PARTS", chance.choice([2, 16]))
    column = chance.choice(list(VALUES))
    schema = pa.schema([("n", pa.int64()), (column, TYPES[column])])
    changes = Changes(catalog.create_table("dw.changing", schema), root, column, chance)
    for _ in range(25):
        name = chance.choice(STEPS)
        getattr(changes, name)()
        changes.check()
    changes.build()
