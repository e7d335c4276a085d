"""Rows that the driver holds, in Python as Spark's own ``collect`` gives them."""

import pytest

from airflow_hive_opt.spark.keys.local_rows import WHOLE_CALENDAR, LocalRows
from airflow_hive_opt.spark.session.session_conf import conf_set
from tests.cases import slow_but

TEXTS = (
    *(
        "a",
        "",
        " ",
        "null",
        "NULL",
        ",",
        "a,b",
        "[a]",
        "], [",
        "a], [b",
        "]",
        "[",
        ", ",
        "é",
        "日本",
    ),
    *("n\nl", "t\tx", "\\", '"', "'", "\x00", "\u2028", "😀"),
)


@pytest.fixture(autouse=True)
def whole_calendar(spark):
    with conf_set(spark, WHOLE_CALENDAR):
        yield


def as_collected(spark, frame, families):
    rows = LocalRows(spark, frame)
    values = rows.values(families)
    assert sorted(values, key=repr) == sorted(map(tuple, frame.collect()), key=repr)
    assert rows.count == len(values)
    assert sorted(rows.frame.collect(), key=repr) == sorted(frame.collect(), key=repr)


@pytest.mark.parametrize("text", slow_but(TEXTS, "a", "", "a], [b", "null", "\x00"))
def test_local_rows_have_the_texts_that_collect_gives(spark, text):
    frame = spark.createDataFrame([(text,)], "c string")
    as_collected(spark, frame, ["string"])
    as_collected(spark, spark.createDataFrame([(text,), ("b",), (None,)], "c string"), ["string"])
    pairs = spark.createDataFrame([(text, "b"), ("b", text), (None, text)], "c string, d string")
    as_collected(spark, pairs, ["string", "string"])


def test_local_rows_have_the_numbers_and_dates_that_collect_gives(spark):
    frame = spark.sql(
        "SELECT * FROM VALUES (1Y, -9223372036854775808L, DATE'2020-02-29', 'x'), "
        "(-128Y, 9223372036854775807L, DATE'0001-01-01', 'y'), (NULL, NULL, NULL, 'z'), "
        "(0Y, 0L, DATE'9999-12-31', '')"
    )
    as_collected(spark, frame, ["integer", "integer", "date", "string"])


def test_local_rows_have_days_before_the_gregorian_calendar(spark):
    frame = spark.sql("SELECT * FROM VALUES (DATE'1582-10-10'), (DATE'1500-02-28')")
    as_collected(spark, frame, ["date"])
    text = LocalRows(spark, frame).frame.selectExpr("CAST(col1 AS STRING) t").collect()
    assert {row.t for row in text} == {"1582-10-10", "1500-02-28"}


@pytest.mark.parametrize("day", ["+12020-01-01", "0000-06-01", "-0005-03-01"])
def test_local_rows_outside_pythons_years_raise_an_error(spark, day):
    rows = LocalRows(spark, spark.sql(f"SELECT DATE'{day}' c"))
    with pytest.raises(ValueError, match="isoformat|out of range"):
        rows.values(["date"])
    assert rows.frame.selectExpr("CAST(c AS STRING)").collect() == [(day,)]


def test_local_rows_may_be_empty(spark):
    as_collected(spark, spark.sql("SELECT 1 a WHERE false"), ["integer"])
