"""The document of a key set: what it keeps, what it refuses, and when its keys are not taken."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from upath import UPath

from airflow_hive_opt.documents.binding import Binding
from airflow_hive_opt.documents.descriptor import DescriptorError
from airflow_hive_opt.documents.key_set import (
    KeyQueryState,
    KeySet,
    KeySetCode,
    ListedKeys,
    path_of,
    read_key_set,
    refusal,
    write_key_set,
)

DIGEST = "0a" * 32
QUERY = KeyQueryState(
    "SELECT DISTINCT `d`.`p` FROM days AS `d`",
    "",
    {"week": "int 1"},
    (100, 1_000),
    "Spark 4 as me",
    Binding("spark_catalog", "dw", "/w", {"dw.days": "/w/days", "dw.weeks": "view 1"}),
    {"dw.days": {"columns": "p int", "files": DIGEST, "snapshot": "7"}},
)
ROWS = [(1, "a", date(1, 1, 1)), (None, "é,'\x00", date(9999, 12, 31)), (-2, None, None)]
KEYS = ListedKeys.of(("bigint", "string", "date"), ROWS, (1, 2, 9), exact=True, calls=("year",))


def test_keys_are_the_same_after_they_were_written(tmp_path):
    path = path_of(UPath(tmp_path), QUERY)
    found = KeySet(QUERY, KEYS, "2026-01-01T00:00:00+00:00")
    write_key_set(found, path)
    assert read_key_set(path) == found
    assert read_key_set(path).keys.rows == ROWS
    none = KeySet(QUERY, ListedKeys.of(("int",), [], [], exact=True), found.created)
    write_key_set(none, path)
    assert read_key_set(path).keys.rows == []


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (replace(KEYS, types=("bigint", "string")), "not one list of values for each type"),
        (replace(KEYS, types=()), "keys have the types"),
        (replace(KEYS, types=("bigint", "string", "double")), "keys have the types bigint, string"),
        (replace(KEYS, types=("bigint", "date", "string")), "a key is no date: 'a'"),
        (replace(KEYS, numbers=(1, 2)), "not one value and one number for each key"),
        (replace(KEYS, numbers=(1, 2, 0)), "a key has no row"),
        (ListedKeys(("int",), (("1", "1"),), (1, 1), True), "a key is there twice"),
        (ListedKeys(("int",), (("1", "01"),), (1, 1), True), "a key is there twice"),
    ],
)
def test_keys_that_contradict_themselves_are_refused(tmp_path, keys, message):
    with pytest.raises(DescriptorError, match=message):
        write_key_set(KeySet(QUERY, keys, "now"), UPath(tmp_path / "1.json"))


def of_days(**facts):
    return replace(QUERY, tables={"dw.days": {**QUERY.tables["dw.days"], **facts}})


def bound(**changes):
    return replace(QUERY, binding=replace(QUERY.binding, **changes))


@pytest.mark.parametrize(
    ("other", "code", "named"),
    [
        (replace(QUERY, sql="SELECT 1"), "NOT_VALID", "the keys of another key query"),
        (replace(QUERY, metadata_sql="SELECT 1"), "NOT_VALID", "another key query"),
        (replace(QUERY, parameters={"week": "int 2"}), "NOT_VALID", "another key query"),
        (replace(QUERY, parameters={"week": "str '1'"}), "NOT_VALID", "another key query"),
        (replace(QUERY, limits=(9, 1_000)), "OTHER_SESSION", "were 9 and 1,000 and are 100 and"),
        (replace(QUERY, reader="Spark 3 as me"), "OTHER_SESSION", "by Spark 3 as me and not by"),
        (bound(catalog="lake"), "OTHER_SESSION", "the current catalog was lake"),
        (bound(database="x"), "OTHER_SESSION", "the current database was x in the key set"),
        (bound(metastore="/v"), "OTHER_SESSION", "the metastore is another"),
        (bound(settings={"a": "1"}), "OTHER_SESSION", "a was 1 in the key set and is not set in"),
        (bound(functions={"f": "1"}), "OTHER_SESSION", "the function f is defined in the key set"),
        (bound(variables={"v": "1"}), "OTHER_SESSION", "the session variable v is defined in"),
        (bound(tables={"dw.days": "/w/days"}), "OTHER_TABLES", "only one of them reads dw.weeks"),
        (
            bound(tables={"dw.days": "/v/days", "dw.weeks": "view 1"}),
            "OTHER_TABLES",
            "dw.days lies in /v/days in the key set and lies in /w/days in this task",
        ),
        (
            bound(tables={"dw.days": "/w/days", "dw.weeks": "view 2"}),
            "OTHER_TABLES",
            "the definition of dw.weeks, a view, has changed since the key set",
        ),
        (replace(QUERY, tables={}), "OTHER_TABLES", "the key set does not have keys of dw.days"),
        (of_days(columns="p bigint"), "OTHER_COLUMNS", "changed from p bigint to p int"),
        (of_days(snapshot="6"), "TABLES_CHANGED", "the snapshot of dw.days changed from 6 to 7"),
        (of_days(files="0b" * 32), "TABLES_CHANGED", "the files of dw.days changed since the key"),
        (of_days(partitions=DIGEST), "TABLES_CHANGED", "the partitions of dw.days changed since"),
    ],
)
def test_keys_of_anything_else_are_not_taken(other, code, named):
    found = refusal(other, QUERY)
    assert found is not None
    assert (found[0], named in found[1]) == (code, True), found


def test_all_differences_are_told():
    other = replace(of_days(snapshot="6"), limits=(1, 1), reader="another")
    assert refusal(other, QUERY)[1].count("; ") == 2
    assert refusal(QUERY, QUERY) is None


def test_a_query_has_one_file_whatever_its_tables_are():
    for other in (of_days(snapshot="6"), bound(database="x"), replace(QUERY, limits=(1, 1))):
        assert other.file_name == QUERY.file_name
    for other in (
        replace(QUERY, sql="SELECT 1"),
        replace(QUERY, metadata_sql="SELECT 1"),
        replace(QUERY, parameters={}),
        bound(reader="worker"),
    ):
        assert other.file_name != QUERY.file_name


def test_every_code_has_a_sentence():
    assert len({code.sentence for code in KeySetCode}) == len(KeySetCode)
