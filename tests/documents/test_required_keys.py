"""The keys that a local task leaves, as a document."""

from __future__ import annotations

import dataclasses
from datetime import date

import pytest
from upath import UPath

from airflow_hive_opt.documents.key_tuples import KeyTuples
from airflow_hive_opt.documents.required_keys import (
    FoundKeys,
    ScanKeys,
    keep_keys,
    keys_path,
    read_keys,
)
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError
from airflow_hive_opt.metastores.required import Required

DAYS = KeyTuples.of(["ds"], frozenset({(date(2026, 1, 2),), (date(2026, 1, 1),)}))
REGIONS = KeyTuples.of(["region", "n"], [("s", 7), ("7\ud800", -(2**63))])
SCAN = ScanKeys(
    *("db.t", ("ds", "region", "n"), ("date", "string", "bigint"), "", (DAYS, REGIONS)),
    queries=("SELECT DISTINCT ds FROM d", ""),
)
LAKE = ScanKeys(
    "lake.db.u", ("at",), ("timestamp",), "iceberg", (KeyTuples.of(["at"], [(-1,), (2**62,)]),)
)
FOUND = FoundKeys((SCAN, LAKE), ("a note",))


@pytest.fixture
def path(tmp_path) -> UPath:
    return UPath(tmp_path) / "1.json"


def test_keys_are_read_with_their_types(path):
    keep_keys(FOUND, "q", "d", path)
    found = read_keys(path, "q", "d")
    assert found == FOUND
    all_of_them, lake = found.required()
    assert all_of_them.columns == ("ds", "region", "n")
    assert all_of_them.tuples == (
        (date(2026, 1, 1), "7\ud800", -(2**63)),
        (date(2026, 1, 1), "s", 7),
        (date(2026, 1, 2), "7\ud800", -(2**63)),
        (date(2026, 1, 2), "s", 7),
    )
    assert lake == Required(
        "lake.db.u", ("at",), ("timestamp",), ("at",), ((-1,), (2**62,)), "iceberg"
    )


def test_keys_of_the_chosen_columns_are_required(path):
    keep_keys(FOUND, "q", "d", path)
    found = read_keys(path, "q", "d")
    (regions,) = found.required(["REGION"])
    assert (regions.columns, regions.tuples) == (("region",), (("7\ud800",), ("s",)))
    assert found.has_columns(["DS", "n"])
    assert not found.has_columns(["ds", "hour"])


def test_a_small_table_without_keys_requires_nothing(path):
    none = dataclasses.replace(SCAN, keys=(DAYS, KeyTuples.of(["region", "n"], [])))
    keep_keys(FoundKeys((none,), ()), "q", "d", path)
    (found,) = read_keys(path, "q", "d").required()
    assert found.tuples == ()


@pytest.mark.parametrize(
    ("query_digest", "digest", "message"),
    [("x", "d", "belongs to another statement"), ("q", "x", "belongs to another attempt")],
)
def test_keys_of_another_statement_or_descriptor_are_refused(path, query_digest, digest, message):
    keep_keys(FOUND, "q", "d", path)
    with pytest.raises(DescriptorError, match=message):
        read_keys(path, query_digest, digest)


def test_missing_keys_are_an_error(path):
    with pytest.raises(NothingThereError):
        read_keys(path, "q", "d")


def test_each_of_the_keys_has_its_query(path, caplog):
    keep_keys(FoundKeys((dataclasses.replace(SCAN, queries=("",)),), ()), "q", "d", path)
    assert "db.t has not one query for each of its keys" in caplog.text


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (KeyTuples(("hour",), (("1",),)), "does not have all the columns of its keys"),
        (KeyTuples(("ds",), (("1",),)), "a value is no date: '1'"),
        (KeyTuples(("ds", "n"), (("2026-01-01",),)), "not one list of values for each column"),
        (KeyTuples(("region", "n"), (("a", "b"), ("1",))), "not one value for each column"),
    ],
)
def test_invalid_keys_are_not_written_and_the_log_says_why(path, caplog, keys, message):
    """Only a sensor is slower then, so the local task goes on."""
    keep_keys(FoundKeys((dataclasses.replace(SCAN, keys=(keys,), queries=()),), ()), "q", "d", path)
    assert not keys_path(path).exists()
    assert message in caplog.text
