"""Partition names, and the values in them by their types."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hive_opt.metastores.partitions import (
    Partition,
    family,
    fits,
    matching,
    parse_name,
    typed,
)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_names_are_unescaped_as_hive_escapes_them(values):
    escaped = [
        "".join(
            f"%{ord(c):02X}" if ord(c) < 32 or c in "\"#%'*/:=?\\\x7f{[]^" else c for c in value
        )
        for value in values
    ]
    name = "/".join(f"c{n}={value}" for n, value in enumerate(escaped))
    expected = tuple(None if v == "__HIVE_DEFAULT_PARTITION__" else v for v in values)
    assert parse_name(name).values == expected


def test_integer_types_are_one_family_and_other_types_have_none():
    assert {family(name) for name in ("tinyint", "smallint", "int", "bigint")} == {"integer"}
    odd = ("varchar(3)", "char(3)", "double", "timestamp", "boolean", "string collate utf8_lcase")
    assert {family(name) for name in odd} == {None}


def test_fits_checks_the_range_of_a_type():
    assert fits(127, "tinyint")
    assert not fits(128, "tinyint")
    assert not fits(-(2**31) - 1, "int")
    assert fits("anything", "string")


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("08", "int", 8),
        ("-1", "bigint", -1),
        ("2020-02-29", "date", date(2020, 2, 29)),
        ("2020-02-30", "date", None),
        ("a", "int", None),
        ("8", "string", "8"),
    ],
)
def test_texts_of_partition_names_become_typed_values(text, type_, value):
    assert typed(text, type_) == value


def test_partitions_match_typed_keys():
    partitions = [
        Partition((ds, hr)) for ds in ("a", "b", None) for hr in ("1", "01", "2", "x", None)
    ]
    keys = [((0,), frozenset({("a",)})), ((1,), frozenset({(1,)}))]
    found = [part.values for part in matching(partitions, ["string", "int"], keys)]
    # 'x' can't be read as an int, so it is Spark's to judge
    assert found == [("a", "1"), ("a", "01"), ("a", "x")]


def test_partitions_match_tuples_of_keys():
    partitions = [Partition((ds, hr)) for ds in "ab" for hr in "12"]
    keys = [((1, 0), frozenset({(1, "a"), (2, "b")}))]
    found = [part.values for part in matching(partitions, ["string", "int"], keys)]
    assert found == [("a", "1"), ("b", "2")]
