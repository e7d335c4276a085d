"""The Glue client against moto's server, with a proxy before it for what moto leaves out.

moto's part: tables, partitions, expressions and their errors. The proxy's part: pages, segments,
limits, unprocessed keys, and every failure.
"""

from __future__ import annotations

import logging
from datetime import date, timedelta

import pytest

from airflow_hive_opt.metastores.glue.connection import GlueSettings
from airflow_hive_opt.metastores.glue.metastore import GlueMetastore
from airflow_hive_opt.metastores.metastore import MetastoreError
from airflow_hive_opt.metastores.partitions import CastText, Partition, matching
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Column
from tests.services.glue_stand_in import REGION, glue_stand_in

pytest.importorskip("moto")  # environments of other versions do not have it

DEFAULT = "__HIVE_DEFAULT_PARTITION__"
ODD = ("o'k", 'd"q', "both'\"x", "back\\slash", "a b", "é", "x/y", "p%q", "t\tx", "n\nl", "a=b")
ODD += ("_", "UPPER", "upper ", "upper", "[z]", "c:d", "*", "?", "日本", "😀", "' OR '1'='1")
DAYS = [str(date(2020, 1, 1) + timedelta(day)) for day in range(3_000)]
TABLES = {
    "many": ([("ds", "string")], [(day,) for day in DAYS]),
    "two": (
        [("region", "string"), ("n", "int")],
        [(region, str(n)) for region in "abcde" for n in range(20)],
    ),
    "odd": ([("ds", "string")], [*((text,) for text in ODD), (DEFAULT,)]),
    "odder": ([("ds", "string"), ("n", "int")], [(text, str(n)) for text in ODD for n in range(3)]),
    "numbers": ([("n", "int")], [("8",), ("08",), ("-3",), ("2147483647",)]),
    "holed": ([("n", "int")], [("8",), ("9",), (DEFAULT,)]),
    "spoilt": ([("n", "int")], [("8",), ("9",), ("x",)]),
    "days": ([("d", "date")], [(day,) for day in DAYS[:1_500]]),
    "money": ([("m", "decimal"), ("n", "int")], [(m, "1") for m in ("1.5", "1.50", "2")]),
    "times": ([("t", "timestamp")], [(f"2020-01-01 00:00:0{s}",) for s in range(3)]),
    "order": ([("order", "int"), ("ds", "string")], [(str(n), d) for n in (1, 2) for d in "ab"]),
    "none": ([("ds", "string")], []),
}


@pytest.fixture(scope="module")
def glue():
    with glue_stand_in() as stand_in:
        for name, (keys, values) in TABLES.items():
            stand_in.create_table(f"odds.{name}", keys, values)
        yield stand_in


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Credentials for boto3's chain; retries wait for a tenth of their time."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASECRETID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-tests")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    from botocore.retries.standard import ExponentialBackoff

    real = ExponentialBackoff.delay_amount
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *args: real(*args) / 10)


@pytest.fixture
def metastore(glue):
    # A call that ran out of time would be repeated, and moto takes seconds for long expressions.
    glue.forget()
    with GlueMetastore(GlueSettings(REGION, glue.endpoint), "odds", timeout=120) as client:
        yield client


def found_by(metastore, name, *keys):
    """The values found by keys, which are those that Python finds among all partitions."""
    table = metastore.table(name)
    found = metastore.partitions_by_keys(table, list(keys), 0)
    assert all(part.location and part.rows == 7 for part in found)
    types = [column.type for column in table.partition_columns]
    every = [Partition(tuple(None if v == DEFAULT else v for v in row)) for row in TABLES[name][1]]
    expected = {part.values for part in matching(every, types, keys)}
    assert len(found) == len(expected)
    assert {part.values for part in found} == expected
    return expected


def test_the_planners_table_has_glues_columns_and_sizes(metastore):
    table = metastore.table("TWO")
    assert table.name == "odds.two"
    assert table.columns == (Column("id", "bigint"),)
    assert table.partition_columns == (Column("region", "string"), Column("n", "int"))
    assert table.location == "s3://bucket/odds/two"
    assert table.partitions_in_metastore
    assert metastore.table("odds.two") is table
    assert metastore.table("nosuch") is None
    assert metastore.table("nosuch.two") is None
    assert metastore.work() == Work(metastore_calls=3)


def test_tables_that_athena_makes_are_read(glue, metastore):
    glue.create_table(
        "odds.projected", [("ds", "string")], parameters={"projection.enabled": "TRUE"}
    )
    assert not metastore.table("projected").partitions_in_metastore
    glue.client().create_table(
        DatabaseName="odds",
        TableInput={"Name": "bare", "PartitionKeys": [{"Name": "DS", "Type": "String"}]},
    )
    path = {"SerdeInfo": {"Parameters": {"path": "s3://b/real"}}, "Location": "s3://b/x-__PLACE"}
    provider = {"spark.sql.sources.provider": "csv"}
    glue.client().create_table(
        DatabaseName="odds",
        TableInput={"Name": "csv", "StorageDescriptor": path, "Parameters": provider},
    )
    assert metastore.table("csv").location == "s3://b/real"
    bare = metastore.table("bare")
    assert (bare.location, bare.partition_columns) == (None, (Column("ds", "string"),))


def test_few_keys_fetch_only_their_partitions(glue, metastore):
    wanted = frozenset((day,) for day in DAYS[10:20])
    assert len(found_by(metastore, "many", ((0,), wanted))) == 10
    assert metastore.work() == Work(metastore_calls=2, partitions_fetched=10)
    assert glue.calls == {"GetTable": 1, "BatchGetPartition": 1}
    tens = frozenset((date.fromisoformat(day),) for day in DAYS[10:20])
    assert len(found_by(metastore, "days", ((0,), tens))) == 10
    assert metastore.work() == Work(metastore_calls=4, partitions_fetched=20)
    assert glue.calls["GetPartitions"] == 1


def test_many_keys_take_several_calls(glue, metastore):
    assert len(found_by(metastore, "many", ((0,), frozenset((day,) for day in DAYS)))) == 3_000
    assert glue.calls["BatchGetPartition"] == 3
    wanted = frozenset((date.fromisoformat(day),) for day in DAYS[:400])
    assert len(found_by(metastore, "days", ((0,), wanted))) == 400
    assert glue.calls["GetPartitions"] == 3  # 14 characters a day
    assert 2_000 < glue.longest_expression <= 2_048
    assert 1 < glue.most_at_once <= 10


def test_tuples_of_keys_and_several_key_sets_are_matched(glue, metastore):
    tuples = frozenset({("a", 1), ("a", 2), ("b", 1), ("b", 2), ("e", 19), ("e", 99)})
    assert len(found_by(metastore, "two", ((0, 1), tuples))) == 5
    swapped = frozenset((n, region) for region, n in tuples)
    assert len(found_by(metastore, "two", ((1, 0), swapped))) == 5
    sets = ((0,), frozenset({("a",), ("c",)})), ((1,), frozenset({(1,), (2,), (3,)}))
    assert len(found_by(metastore, "two", *sets)) == 6
    assert metastore.work().partitions_fetched == 16
    assert glue.calls["GetPartitions"] == 3


def test_without_keys_no_partition_call_is_made(glue, metastore):
    assert found_by(metastore, "two", ((0,), frozenset())) == set()
    assert glue.calls == {"GetTable": 1}


def test_values_with_special_characters_are_found_by_name(glue, metastore):
    for text in (*ODD, "nosuch", "x" * 2_000, ""):
        found_by(metastore, "odd", ((0,), frozenset({(text,)})))
    assert len(found_by(metastore, "odd", ((0,), frozenset((text,) for text in ODD)))) == len(ODD)
    assert "GetPartitions" not in glue.calls


@pytest.mark.parametrize("text", [*ODD, "nosuch"])
def test_values_with_special_characters_are_found_by_expression(glue, metastore, text):
    """Quotes and backslashes are not compared by Glue; then the other columns are."""
    found = found_by(metastore, "odder", ((0, 1), frozenset({(text, 1)})))
    assert len(found) == (text in ODD)
    exact = not any(character in text for character in "'\"\\\t\n")
    assert metastore.work().partitions_fetched == (len(found) if exact else len(ODD))
    assert len(found_by(metastore, "odder", ((0,), frozenset({(text,)})))) == 3 * (text in ODD)


def test_no_key_finds_the_default_partition(metastore):
    assert found_by(metastore, "odd", ((0,), frozenset({(DEFAULT,)}))) == set()


def test_values_that_glue_can_not_compare_are_compared_in_python(glue, metastore, caplog):
    """moto answers as Glue does: one value that is no integer is an error for the whole table."""
    caplog.set_level(logging.INFO)
    assert found_by(metastore, "holed", ((0,), frozenset({(8,)}))) == {("8",)}
    assert found_by(metastore, "spoilt", ((0,), frozenset({(8,)}))) == {("8",), ("x",)}
    assert "InvalidStateException" in caplog.text
    assert found_by(metastore, "numbers", ((0,), frozenset({(8,), (-3,)}))) == {
        *(("8",), ("08",), ("-3",))
    }


def test_decimals_and_timestamps_are_compared_as_text_after_glue(metastore):
    """Glue compares them as numbers and times, so it may answer with more than one spelling."""
    keys = ((0,), frozenset({(CastText("1.5", "decimal(10,0)"),)}))
    assert found_by(metastore, "money", keys) == {("1.5", "1")}
    assert metastore.work().partitions_fetched == 2
    keys = ((0,), frozenset({(CastText("2020-01-01 00:00:02", "timestamp"),)}))
    assert found_by(metastore, "times", keys) == {("2020-01-01 00:00:02",)}
    assert metastore.work().partitions_fetched == 3


def test_a_column_with_a_keyword_as_its_name_is_not_compared(metastore):
    assert found_by(metastore, "order", ((0, 1), frozenset({(1, "a")}))) == {("1", "a")}
    assert metastore.work().partitions_fetched == 2


def test_counting_partitions_stops_after_a_page(glue, metastore):
    small, many = metastore.table("two"), metastore.table("many")
    assert metastore.partition_count(small) == 100
    assert metastore.partition_count(many) == 1_001
    assert metastore.partition_count(metastore.table("none")) == 0
    assert metastore.first_names(many, 5_000) == (1_001, None)
    assert len(metastore.first_names(small, 5_000)[1]) == 100
    assert glue.calls["GetPartitions"] == 5
    assert metastore.partition_count(many, beyond=1_001) == 3_000


def test_listing_continues_after_pages_with_few_or_no_partitions(glue, metastore):
    """Glue may send less than it could, and say that more follows."""
    glue.largest_page = 7
    names = metastore.partition_names(metastore.table("two"))
    assert {part.values for part in names} == set(TABLES["two"][1])
    assert glue.calls["GetPartitions"] == 21  # ten segments of two pages


def test_all_partitions_are_listed_in_segments(glue, metastore):
    many = metastore.table("many")
    metastore.partition_count(many)
    assert {part.values for part in metastore.partition_names(many)} == set(TABLES["many"][1])
    assert glue.calls["GetPartitions"] == 11
    assert metastore.work().partitions_fetched == 4_000


def test_an_expression_of_several_pages_is_asked_in_segments(glue, metastore):
    glue.largest_page = 50
    keys = ((0,), frozenset({("a",), ("b",), ("c",), ("d",)}))
    assert len(found_by(metastore, "two", keys)) == 80
    assert glue.calls["GetPartitions"] == 11
    assert metastore.work().partitions_fetched == 130


def test_existing_partitions_are_found_by_name(glue, metastore):
    odd = metastore.table("odd")
    wanted = [Partition((text,)) for text in (*ODD, None, "nosuch")]
    assert metastore.existing(odd, wanted) == {(text,) for text in (*ODD, None)}
    assert glue.calls == {"GetTable": 1, "BatchGetPartition": 1}
    found = metastore.partitions_by_names(metastore.table("two"), [Partition(("a", "1"))])
    assert [(part.values, part.location) for part in found] == [
        (("a", "1"), "s3://bucket/odds/two/1")
    ]


def test_very_many_keys_list_all_partitions(glue, metastore, monkeypatch):
    from airflow_hive_opt.metastores.glue import metastore as glue_metastore

    wanted = frozenset((date.fromisoformat(day),) for day in DAYS[:1_200])
    monkeypatch.setattr(glue_metastore, "_MOST_EXPRESSIONS", 5)
    assert len(found_by(metastore, "days", ((0,), wanted))) == 1_200
    assert metastore.work().partitions_fetched == 2_500
    monkeypatch.setattr(glue_metastore, "_NAMED_UP_TO", 1_000)
    assert len(found_by(metastore, "many", ((0,), frozenset((day,) for day in DAYS)))) == 3_000
    assert "BatchGetPartition" not in glue.calls


def test_unprocessed_keys_are_asked_again(glue, metastore):
    glue.unprocessed = 5
    wanted = frozenset((day,) for day in DAYS[:12])
    assert len(found_by(metastore, "many", ((0,), wanted))) == 12
    assert glue.calls == {"GetTable": 1, "BatchGetPartition": 2, "GetPartitions": 1}
    glue.forget()
    glue.unprocessed = 1
    assert len(found_by(metastore, "many", ((0,), wanted))) == 12
    assert glue.calls == {"BatchGetPartition": 2, "GetPartitions": 1}


def test_a_missing_table_is_an_error_that_names_region_and_table(metastore):
    table = metastore.table("two")
    gone = type(table)("odds.gone", (), table.partition_columns)
    for question in (
        lambda: metastore.partition_count(gone),
        lambda: metastore.partition_names(gone),
        lambda: metastore.partitions_by_names(gone, [Partition(("x", "1"))]),
        lambda: metastore.partitions_by_keys(gone, [((0,), frozenset({("x",)}))], 0),
    ):
        with pytest.raises(MetastoreError, match=r"AWS Glue in eu-central-1.*odds\.gone"):
            question()
