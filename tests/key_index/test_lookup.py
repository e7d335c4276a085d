"""The data files that hold a key, by the parts of an index."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet
import pytest
from upath import UPath

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.key_index.lookup import files_holding
from airflow_hive_opt.key_index.manifest import KeyIndex, folder_of, read_index, write_index
from airflow_hive_opt.key_index.part import write_part

UUID = "6f1c7c9e-0000-4000-8000-000000000001"
LATER, DAY = date(1970, 3, 1), timedelta(days=1)


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path)


def written(root, type_, *parts):
    """An index whose parts have the given pairs of a key and a file's position, and paths."""
    folder = folder_of(root, UUID, "3")
    arrow = {"bigint": pa.int64(), "string": pa.large_binary(), "date": pa.date32()}[type_]
    made = tuple(
        write_part(
            folder,
            pa.array([key for key, _ in pairs], arrow),
            pa.array([file for _, file in pairs], pa.uint32()),
            paths,
        )
        for pairs, paths in parts
    )
    index = KeyIndex(UUID, "dw.orders", "3", "order_id", type_, made)
    write_index(root, index)
    found = read_index(root, UUID, "3")
    assert found == index
    return found


@pytest.mark.parametrize(
    ("type_", "low", "middle", "high"),
    [
        ("bigint", -(2**63), 0, 2**63 - 1),
        ("date", date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)),
        ("string", "", "a", "ü\U0001f600"),
    ],
)
def test_files_that_hold_a_key_are_found(root, type_, low, middle, high):
    as_stored = [key.encode() if isinstance(key, str) else key for key in (low, middle, high)]
    first = [(as_stored[0], 1), (as_stored[1], 0), (as_stored[1], 1)], ["a", "b", "empty"]
    second = [(as_stored[2], 0)], ["c"]
    index = written(root, type_, first, second, ([], ["without keys"]))
    covered = {"a", "b", "empty", "c", "without keys"}
    for keys, holding in (
        ([low], {"b"}),
        ([middle], {"a", "b"}),
        ([high, middle, high], {"a", "b", "c"}),
        ([], set()),
    ):
        found = files_holding(root, index, keys)
        assert (found.holding, found.covered) == (holding, covered)


@pytest.mark.parametrize(
    ("type_", "key_of"), [("bigint", lambda at: at * 2**40), ("date", lambda at: LATER + at * DAY)]
)
@pytest.mark.parametrize("wanted", [1, 3, 20, 900])
def test_few_keys_are_searched_and_many_are_compared(root, type_, key_of, wanted):
    """3,800 sorted keys, each there about twelve times; two wanted keys of three are absent."""
    chance = random.Random(wanted)
    held = sorted(chance.choices(range(-300, 600, 3), k=2_000) + list(range(-300, 600, 3)) * 6)
    pairs = [(key_of(at), chance.randrange(50)) for at in held]
    paths = [f"{file}" for file in range(50)]
    index = written(root, type_, (pairs, paths))
    for _ in range(20):
        keys = {key_of(at) for at in chance.sample(range(-301, 602), wanted)}
        keys |= {pairs[0][0], pairs[-1][0]} if chance.random() < 0.5 else set()
        found = files_holding(root, index, sorted(keys)).holding
        assert found == {f"{file}" for key, file in pairs if key in keys}


def test_only_groups_of_rows_with_a_key_between_their_ends_are_read(root, monkeypatch):
    count = 1_500_000
    keys, files = pa.array(range(0, 2 * count, 2)), pa.array([0] * count, pa.uint32())
    part = write_part(folder_of(root, UUID, "3"), keys, files, ["a"])
    index = KeyIndex(UUID, "dw.orders", "3", "order_id", "bigint", (part,))
    read = []
    of_pyarrow = pa.parquet.ParquetFile.read_row_group

    def read_row_group(self, group, **options):
        read.append(group)
        return of_pyarrow(self, group, **options)

    monkeypatch.setattr(pa.parquet.ParquetFile, "read_row_group", read_row_group)
    assert files_holding(root, index, [2_400_000]).holding == {"a"}
    assert read == [2]
    assert not files_holding(root, index, [-1, 2 * count]).holding
    assert read == [2]


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        ("bigint", "1"),
        ("bigint", True),
        ("bigint", 1.0),
        ("bigint", None),
        ("bigint", 2**63),
        ("date", datetime(2024, 1, 1)),
        ("date", 1),
        ("string", 1 << 20_000),
        ("string", b"a"),
        ("string", "\ud800"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_keys_of_another_type_are_refused(root, type_, key):
    index = written(root, type_)
    with pytest.raises(DescriptorError, match="key"):
        files_holding(root, index, [key])
