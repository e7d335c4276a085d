"""Keys that are not shared, since another task may read others by the same description."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_hive_opt.documents.job import Status
from airflow_hive_opt.documents.key_set import ListedKeys
from airflow_hive_opt.local_task.shared_key_sets import NotShared
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.spark.catalog.table_state import UnknownState, table_state
from airflow_hive_opt.spark.keys import taken_rows
from airflow_hive_opt.spark.keys.key_query import KeyQuery
from airflow_hive_opt.spark.keys.taken_rows import TakenRows
from airflow_hive_opt.spark.local_task.described_keys import _check_settings
from tests.spark.shared_keys import aged, codes, run, why
from tests.spark.stages import job_of
from tests.spark.test_shared_key_sets import FIVE, documents
from tests.spark.test_shared_key_sets import database as database
from tests.spark.test_shared_key_sets import days as days


def test_keys_that_differ_each_day_are_never_kept(spark, tmp_path, days):
    spark.sql("CREATE VIEW today AS SELECT * FROM days WHERE week < day(current_date()) + 9")
    for _ in range(2):
        found = run(spark, tmp_path, "SELECT f.id FROM fact f JOIN today d ON f.p = d.p")
        assert (codes(found), found["reason"]) == (["ABSENT"], "KEY_SOURCE_NOT_DETERMINISTIC")
    assert documents(tmp_path) == []
    spark.sql("DROP VIEW today")


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("d.day = 'today'", "NOT_SHARED"),
        ("d.day <= CAST(' Yesterday' AS DATE)", "NOT_SHARED"),
        ("d.day = :day", "NOT_SHARED"),
        ("d.day <= to_date(concat('yester', 'day'))", "ABSENT"),
        ("d.day <= (SELECT max(to_date(concat('to', 'day'))) FROM weeks)", "ABSENT"),
    ],
)
def test_days_that_texts_name_are_read_in_each_task(spark, tmp_path, condition, code):
    """Tomorrow they are other days; midnight may also pass before the map join."""
    spark.sql("CREATE TABLE dates USING parquet AS SELECT 1 p, date_sub(current_date(), 1) day")
    spark.sql("CREATE TABLE weeks USING parquet AS SELECT 1 AS week")
    aged(spark, "dates", "weeks")
    sql = f"SELECT f.id FROM fact f JOIN dates d ON f.p = d.p WHERE {condition}"
    parameters = {"day": "now"} if ":day" in condition else {}
    try:
        found = run(spark, tmp_path, sql, parameters=parameters)
        refused = (codes(found), found["reason"])
        assert refused == ([code], "KEY_SOURCE_NOT_DETERMINISTIC")
        assert documents(tmp_path) == []
    finally:
        for name in ("dates", "weeks"):
            spark.sql(f"DROP TABLE {name}")


def test_a_day_that_a_view_names_is_read_in_each_task(spark, tmp_path, days):
    """Spark's parser makes a date of it, so the plan does not show the text."""
    spark.sql("CREATE VIEW recent AS SELECT * FROM days WHERE TIMESTAMP'today' > '2020-01-01'")
    try:
        found = run(spark, tmp_path, "SELECT f.id FROM fact f JOIN recent d ON f.p = d.p")
        assert (codes(found), documents(tmp_path)) == (["NOT_SHARED"], [])
        assert "'today may be another day later" in why(found)
    finally:
        spark.sql("DROP VIEW recent")


def test_a_view_that_is_replaced_while_the_keys_are_read_is_noticed(
    spark, tmp_path, days, monkeypatch, caplog
):
    spark.sql("CREATE OR REPLACE VIEW weeks AS SELECT * FROM days WHERE week = 1")
    read = KeyQuery.run

    def replacing(query):
        found = read(query)
        spark.sql("CREATE OR REPLACE VIEW weeks AS SELECT * FROM days WHERE week = 2")
        return found

    monkeypatch.setattr(KeyQuery, "run", replacing)
    sql = "SELECT f.id FROM fact f JOIN weeks d ON f.p = d.p"
    job = job_of(sql, path=str(tmp_path / "0.json"), key_sets=str(tmp_path / "keys"))
    with caplog.at_level("INFO"):
        assert run_job(spark, job).status is Status.DONE
    assert "the keys of weeks are not kept: a table changes" in caplog.text
    assert documents(tmp_path) == []
    spark.sql("DROP VIEW weeks")


def test_what_may_leave_out_files_is_not_shared(spark, tmp_path, days):
    session = spark.newSession()
    session.sql("USE shared_keys")
    session.sql(
        "CREATE TABLE lax USING parquet OPTIONS (ignoreCorruptFiles = 'true') AS SELECT * FROM days"
    )
    aged(session, "lax")
    for sql, named in (
        (FIVE[0].replace("days", "lax"), "shared_keys.lax has an option with which Spark may"),
        (FIVE[0], "spark.sql.files.ignoreMissingFiles is true"),
    ):
        found = run(session, tmp_path, sql)
        assert codes(found) == ["NOT_SHARED"]
        assert named in why(found)
        session.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    assert documents(tmp_path) == []
    session.sql("DROP TABLE lax")


def test_extensions_that_may_filter_rows_are_refused():
    known = "io.delta.sql.DeltaSparkSessionExtension"
    _check_settings({"spark.sql.extensions": known, "spark.sql.files.ignoreMissingFiles": "false"})
    with pytest.raises(NotShared, match="the extension a.Ranger may filter the rows"):
        _check_settings({"spark.sql.extensions": f"{known}, a.Ranger"})


def test_keys_of_bytes_that_are_no_text_are_not_kept(spark, tmp_path):
    spark.sql("CREATE TABLE texts USING parquet AS SELECT CAST(X'61FF' AS STRING) AS v")
    spark.sql("CREATE TABLE named (id INT, v STRING) USING parquet PARTITIONED BY (v)")
    spark.sql("INSERT INTO named VALUES (1, 'a'), (2, 'b')")
    aged(spark, "texts")
    try:
        found = run(spark, tmp_path, "SELECT f.id FROM named f JOIN texts k ON k.v = f.v")
        assert (codes(found), documents(tmp_path)) == (["ABSENT"], [])
    finally:
        for name in ("texts", "named"):
            spark.sql(f"DROP TABLE {name}")


def test_partitions_of_another_format_have_no_known_state(spark):
    spark.sql("CREATE TABLE mixed (p STRING) PARTITIONED BY (day STRING) STORED AS TEXTFILE")
    spark.sql("INSERT INTO mixed PARTITION (day = '1') VALUES ('1')")
    aged(spark, "mixed")
    try:
        table = catalog_of(spark).table("shared_keys.mixed")
        assert table_state(spark, table)["partitions"]
        serde = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
        spark.sql(f"ALTER TABLE mixed PARTITION (day = '1') SET SERDE '{serde}'")
        with pytest.raises(UnknownState, match="partitions of another format"):
            table_state(spark, table)
    finally:
        spark.sql("DROP TABLE mixed")


def test_keys_of_which_spark_makes_other_rows_are_not_used(spark, monkeypatch):
    keys = ListedKeys.of(["int"], [(1,), (2,)], (1, 1), exact=True)
    assert TakenRows(spark, keys, "n").frame.count() == 2
    monkeypatch.setattr(taken_rows, "json", SimpleNamespace(dumps=lambda _: "no JSON"))
    with pytest.raises(ValueError, match="0 rows of the 2 keys"):
        _ = TakenRows(spark, keys, "n").frame
