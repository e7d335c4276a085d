"""Joins with Delta tables: the rows are Spark's own, and only the files of the keys are read."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.lakes.databases import drop_database
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import OVER_CONNECT, needs_jvm

DAYS = 20


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE DATABASE dw")
    rows = (
        f"SELECT id, date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day, "
        "timestamp_seconds(id * 900) AS at, concat('k', id % 7) AS name, id % 3 AS v "
        "FROM range(0, 200, 1, 1)"
    )
    layouts = {"by_day": "day", "by_name": "name, v", "by_hour": "at"}
    for name, layout in layouts.items():
        lake.sql(f"CREATE TABLE dw.{name} USING delta PARTITIONED BY ({layout}) AS {rows}")
    lake.sql(f"CREATE TABLE dw.whole USING delta AS {rows}")
    lake.sql("INSERT INTO dw.by_day VALUES (900, NULL, NULL, NULL, 1)")
    lake.sql("CREATE TABLE dw.`sorted` USING delta AS SELECT * FROM dw.whole LIMIT 0")
    for start in range(0, 200, 20):
        lake.sql(
            f"INSERT INTO dw.`sorted` SELECT /*+ COALESCE(1) */ * FROM dw.whole "
            f"WHERE id >= {start} AND id < {start + 20}"
        )
    lake.sql(
        "CREATE TABLE picked USING parquet AS SELECT * FROM VALUES "
        "(DATE'2024-01-03', 5L, 'k1', 1L), "
        "(DATE'2024-01-03', 5L, 'k1', 1L), (DATE'2024-01-05', 7L, 'k2', 2L), "
        "(DATE'2030-01-01', 999L, 'none', 0L), (NULL, NULL, NULL, NULL) AS t(day, id, name, v)"
    )
    lake.sql("CREATE TABLE dw.picked USING delta AS SELECT * FROM picked")
    lake.sql("CREATE VIEW dw.renamed AS SELECT id, DAY AS ds FROM dw.by_day")
    yield lake
    lake.sql("DROP TABLE picked")
    drop_database(lake, "dw")


def path_of(session, table: str) -> str:
    return session.sql(f"DESCRIBE DETAIL {table}").head()["location"].removeprefix("file:")


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT b.id FROM dw.by_day b JOIN picked p ON b.day = p.day", 2),
        ("SELECT b.id FROM dw.by_day b JOIN dw.picked p ON b.day = p.day", 2),
        ("SELECT b.id FROM spark_catalog.DW.By_Day b JOIN picked p ON b.DAY = p.day", 2),
        ("SELECT b.id, p.id FROM picked p LEFT JOIN dw.by_day b ON b.day = p.day", 2),
        ("SELECT id FROM dw.by_day WHERE day IN (SELECT day FROM picked WHERE id = 7)", 1),
        ("SELECT b.id FROM dw.by_day b JOIN picked p ON b.day = p.day AND p.id = 1", 0),
        ("SELECT b.id FROM dw.renamed b JOIN picked p ON b.ds = p.day", 2),
        (
            "SELECT x.day, n FROM (SELECT day, count(v) n FROM dw.by_day GROUP BY day) x "
            "JOIN picked p ON x.day = p.day",
            2,
        ),
        (
            "WITH b AS (SELECT * FROM dw.by_day) SELECT x.v, y.v FROM b x, b y, picked p "
            "WHERE x.day = p.day AND y.day = p.day AND x.id = y.id",
            4,
        ),
        ("SELECT b.v FROM dw.by_name b JOIN picked p ON b.name = p.name AND b.v = p.v", 6),
    ],
)
def test_rows_and_files_of_joins_are_those_of_the_keys(tables, tmp_path, sql, files):
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert "RESTRICTED" in found.reasons.values()
    read = [each.files for each in found.report.reads if each.table in ("dw.by_day", "dw.by_name")]
    assert sum(read) == files
    planned = [each.files for each in found.report.descriptor.planned_files]
    assert OVER_CONNECT or sum(planned) == (files // 2 if "WITH" in sql else files)


@needs_jvm  # only there files are counted before the statement
def test_no_key_matches_so_no_file_is_planned(tables, tmp_path):
    sql = "SELECT b.id FROM dw.by_day b JOIN picked p ON b.day = p.day AND p.id = 1"
    (planned,) = run(tables, sql, tmp_path).report.descriptor.planned_files
    assert (planned.files, planned.partitions, planned.total_files) == (0, 0, 21)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT b.id FROM dw.by_day b LEFT JOIN picked p ON b.day = p.day",
            "PRESERVED_SIDE",
        ),
        (
            "SELECT b.id FROM dw.by_day b JOIN picked p ON b.day <= p.day",
            "KEYS_NOT_COMPARED_AS_COLUMNS",
        ),
        (
            "SELECT b.id FROM dw.by_day VERSION AS OF 0 b JOIN picked p ON b.day = p.day",
            "SCAN_NOT_RESTRICTABLE",
        ),
        (
            "SELECT b.id FROM dw.by_day TIMESTAMP AS OF '{at}' b JOIN picked p ON b.day = p.day",
            "SCAN_NOT_RESTRICTABLE",
        ),
        (
            "SELECT b.id FROM dw.by_day b JOIN picked p ON b.id = p.id",
            "NO_CONDITION_ON_PARTITION_COLUMN",
        ),
        (
            "SELECT b.id FROM dw.by_day b WHERE b.day NOT IN (SELECT day FROM picked)",
            "CONDITION_NOT_SELF_CONTAINED",
        ),
    ],
)
def test_scans_of_delta_tables_that_are_read_whole(tables, tmp_path, sql, reason):
    sql = sql.format(at=tables.sql("DESCRIBE HISTORY dw.by_day").head()["timestamp"])
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert found.reasons == {"b": reason}
    assert found.statement == sql


def test_a_version_in_a_subquery_has_plain_sparks_rows(tables, tmp_path):
    sql = (
        "SELECT b.id FROM (SELECT * FROM dw.by_day VERSION AS OF 0) b JOIN picked p "
        "ON b.day = p.day"
    )
    assert run(tables, sql, tmp_path).rows == rows_of(tables, sql)


@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_table_named_by_its_path_is_restricted(tables, tmp_path, scheme):
    table = f"delta.`{scheme}{path_of(tables, 'dw.by_day')}`"
    sql = f"SELECT b.id FROM {table} b JOIN picked p ON b.day = p.day"
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql) != []
    assert found.reasons == {"b": "RESTRICTED"}
    if not OVER_CONNECT:
        (planned,) = found.report.descriptor.planned_files
        assert (planned.files, planned.partitions, planned.total_files) == (2, 2, 21)
        assert [each.files for each in found.report.reads if "by_day" in each.table] == [2]


def test_a_table_named_by_its_path_is_restricted_in_two_tasks(tables, tmp_path):
    table = f"delta.`{path_of(tables, 'dw.by_day')}`"
    sql = f"SELECT b.id FROM {table} b JOIN picked p ON b.day = p.day"
    found = run_apart(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert found.reasons == {"b": "RESTRICTED"}


def test_a_path_with_a_version_has_plain_sparks_rows(tables, tmp_path):
    table = f"delta.`{path_of(tables, 'dw.by_day')}@v0`"
    sql = f"SELECT b.id FROM {table} b JOIN picked p ON b.day = p.day"
    found = run(tables, sql, tmp_path, hold_snapshots=True)
    assert found.rows == rows_of(tables, sql) != []


def test_a_path_that_is_no_table_is_an_error(tables, tmp_path):
    (tmp_path / "nothing").mkdir()
    sql = f"SELECT b.id FROM delta.`{tmp_path}/nothing` b JOIN picked p ON b.day = p.day"
    # over Spark Connect, the statement passes through and gets Delta's own error
    error, words = (
        (AnalysisException, "TABLE_NOT_FOUND") if OVER_CONNECT else (PlanError, "no table")
    )
    with pytest.raises(error, match=words):
        run(tables, sql, tmp_path)


@pytest.mark.parametrize("table", ["sorted", "whole"])
def test_a_data_column_restricts_the_scan_with_key_predicate(tables, tmp_path, table):
    sql = f"SELECT b.v FROM dw.`{table}` b JOIN picked p ON b.id = p.id"
    asked = Settings.of(switches={"key_predicate": True})
    whole, restricted = run(tables, sql, tmp_path), run(tables, sql, tmp_path, settings=asked)
    assert whole.rows == restricted.rows == rows_of(tables, sql)
    # the unpartitioned table has no column by which it groups its files
    assert whole.reasons.get("b") in (None, "NO_CONDITION_ON_PARTITION_COLUMN")
    assert restricted.reasons == {"b": "RESTRICTED"}
    counts = [each.files(f"dw.{table}") for each in (whole, restricted)]
    assert counts == ([10, 1] if table == "sorted" else [1, 1])


def test_many_keys_of_a_partition_column_stay_a_list(tables, tmp_path):
    tables.sql(
        "CREATE OR REPLACE TEMPORARY VIEW many AS SELECT DATE'2023-06-01' + INTERVAL 2 day "
        "* id AS day FROM range(400)"
    )
    days = "(SELECT CAST(day AS date) AS day FROM many)"
    sql = f"SELECT b.v FROM dw.by_day b JOIN {days} m ON b.day = m.day"
    found = run(tables, sql, tmp_path)
    (filter_,) = found.report.descriptor.row_filters
    assert (filter_.is_range, len(filter_.values)) == (False, 400)
    assert found.rows == rows_of(tables, sql)


def test_scattered_keys_of_a_data_column_are_ranges(tables, tmp_path):
    """Delta compares a list with a file's bounds as one range."""
    sql = (
        "SELECT b.v FROM dw.`sorted` b JOIN (SELECT id * 150 AS id FROM range(2)) m ON b.id = m.id"
    )
    asked = Settings.of(switches={"key_predicate": True})
    found = run(tables, sql, tmp_path, settings=asked)
    assert found.rows == rows_of(tables, sql)
    assert found.files("dw.sorted") == 2


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_timestamp_keys_find_their_files_in_each_time_zone(tables, tmp_path, zone):
    tables.conf.set("spark.sql.session.timeZone", zone)
    try:
        sql = (
            "SELECT b.id, b.at FROM dw.by_hour b JOIN (SELECT DISTINCT at "
            "FROM dw.whole WHERE id IN (0, 1, 50)) w ON b.at = w.at"
        )
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert [row[0] for row in found.rows] == [0, 1, 50]
        assert found.files("dw.by_hour") == 3
    finally:
        tables.conf.unset("spark.sql.session.timeZone")


def test_insert_and_create_table_as_select_read_only_files_of_the_keys(tables, tmp_path):
    query = "SELECT b.* FROM dw.by_day b JOIN picked p ON b.day = p.day"
    plain = rows_of(tables, query)
    for using in ("delta", "parquet"):
        found = run(tables, f"CREATE TABLE made USING {using} AS {query}", tmp_path)
        assert "DATE'2024-01-03'" in found.statement
        assert rows_of(tables, "SELECT * FROM made") == plain
        found = run(tables, f"INSERT INTO made {query}", tmp_path)
        assert "DATE'2024-01-03'" in found.statement
        assert rows_of(tables, "SELECT * FROM made") == sorted(plain * 2, key=repr)
        run(tables, f"INSERT OVERWRITE made {query}", tmp_path)
        assert rows_of(tables, "SELECT * FROM made") == plain
        tables.sql("DROP TABLE made")


def test_rows_written_between_two_tasks_are_read(tables, tmp_path):
    sql = "SELECT b.id FROM dw.by_day b JOIN picked p ON b.day = p.day"

    def written():
        tables.sql("INSERT INTO dw.by_day VALUES (901, DATE'2024-01-03', NULL, NULL, 1)")

    try:
        found = run_apart(tables, sql, tmp_path, written)
        assert (901,) in found.rows
        assert found.rows == rows_of(tables, sql)
        assert found.files("dw.by_day") == 3
        (planned,) = found.report.descriptor.planned_files
        assert OVER_CONNECT or planned.files == 2  # as the local task found it
    finally:
        tables.sql("DELETE FROM dw.by_day WHERE id = 901")
