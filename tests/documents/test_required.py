"""The list of required partitions as a document."""

import dataclasses
from datetime import date

import pytest
from upath import UPath

from airflow_hive_opt.documents.required import RequiredPartitions, read, write
from airflow_hive_opt.documents.storage import DescriptorError, NothingThereError
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.required import (
    Required,
    TooManyRequiredPartitions,
    combined,
    missing,
    name_of,
)

DATES = Required(
    "db.t", ("ds", "n"), ("date", "int"), ("ds",), ((date(2026, 1, 1),), (date(2026, 1, 2),))
)


def test_partition_values_are_compared_by_column_type():
    present = [Partition(("2026-01-01", "7")), Partition((None, "7")), Partition(("odd", "7"))]
    assert missing(DATES, present) == ((date(2026, 1, 2),),)
    assert name_of(DATES, (date(2026, 1, 2),)) == "ds=2026-01-02"

    assert [name_of(LAKE, row) for row in LAKE.tuples] == [
        "at=1969-12-31T23:59:59.999999+00:00",
        f"at={2**62} microseconds",
    ]


@pytest.fixture
def path(tmp_path) -> UPath:
    return UPath(tmp_path) / "1.json"


ALL = Required(
    "db.u",
    ("a", "b", "c"),
    ("bigint", "string", "date"),
    ("c", "a", "b"),
    ((date(999, 1, 1), -(2**63), ""), (date(2026, 1, 1), 7, "7\ud800")),
)
LAKE = Required(
    "lake.db.v", ("at", "b"), ("timestamp", "string"), ("at",), ((-1,), (2**62,)), "iceberg"
)
LIST = RequiredPartitions("digest", ("ds",), "token", (DATES, ALL, LAKE))


def test_a_list_of_required_partitions_is_read_with_its_types(path):
    write(LIST, path)
    assert read(path, "digest", ["ds"], "token") == (DATES, ALL, LAKE)


@pytest.mark.parametrize(
    ("whose", "message"),
    [
        (("other", ("ds",), "token"), "belongs to another statement"),
        (("digest", (), "token"), "belongs to other columns"),
        (("digest", ("ds",), "other"), "belongs to another attempt"),
    ],
)
def test_a_list_of_another_statement_columns_or_attempt_is_refused(path, whose, message):
    write(LIST, path)
    with pytest.raises(DescriptorError, match=message):
        read(path, *whose)


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", "[{}]", "7", "{}"])
def test_text_that_is_no_list_of_required_partitions_is_refused(path, text):
    path.write_text(text)
    with pytest.raises(DescriptorError, match="the list of required partitions .* is refused"):
        read(path, "digest", ["ds"], "token")


def test_a_missing_list_of_required_partitions_is_an_error(path):
    with pytest.raises(NothingThereError):
        read(path, "digest", ["ds"], "token")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"types": ("date",)}, "has 1 types for 2 partition columns"),
        ({"columns": ("x",)}, "not have all the requested columns"),
        ({"tuples": ((date(2026, 1, 1), 1),)}, "has 2 values for 1 columns"),
        ({"tuples": (("yesterday",),)}, "a value is no date: 'yesterday'"),
        ({"types": ("timestamp", "int"), "tuples": (("1",),)}, "a value is no timestamp"),
        (
            {"types": ("timestamp", "int"), "tuples": (("now",),), "provider": "iceberg"},
            "invalid literal",
        ),
    ],
)
def test_an_invalid_list_of_required_partitions_is_not_written(path, change, message):
    wrong = dataclasses.replace(LIST, tables=(dataclasses.replace(DATES, **change),))
    with pytest.raises(DescriptorError, match=message):
        write(wrong, path)
    assert not path.exists()


def test_too_many_combinations_of_keys_are_an_error():
    many = [(n,) for n in range(1001)]
    with pytest.raises(TooManyRequiredPartitions, match="1,002,001 combinations"):
        list(combined([(["a"], many), (["b"], many)]))
