"""Joins with Iceberg tables: the rows are Spark's own, and only the files of the keys are read."""

from __future__ import annotations

import pytest

from airflow_hive_opt.statement.settings import Settings
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import OVER_CONNECT, needs_jvm

DAYS = 20


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE NAMESPACE lake.dw")
    rows = (
        f"SELECT id, date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day, "
        "timestamp_seconds(id * 900) AS at, concat('k', id % 7) AS name, id % 3 AS v "
        "FROM range(200)"
    )
    layouts = {
        "by_day": "PARTITIONED BY (day)",
        "by_bucket": "PARTITIONED BY (bucket(8, id))",
        "by_month_of_day": "PARTITIONED BY (months(day))",
        "by_hour": "PARTITIONED BY (hours(at))",
        "by_name": "PARTITIONED BY (truncate(2, name), v)",
        "by_text": "PARTITIONED BY (name)",
        "history": "PARTITIONED BY (day)",  # the name of a table of metadata
        "whole": "",
    }
    for name, layout in layouts.items():
        lake.sql(f"CREATE TABLE lake.dw.{name} USING iceberg {layout} AS {rows}")
    for name in ("by_day", "by_text"):
        lake.sql(f"INSERT INTO lake.dw.{name} VALUES (900, NULL, NULL, NULL, 1)")
    lake.sql("CREATE TABLE lake.dw.`sorted` USING iceberg AS SELECT * FROM lake.dw.whole LIMIT 0")
    lake.sql("ALTER TABLE lake.dw.`sorted` WRITE ORDERED BY id")
    for start in range(0, 200, 20):
        lake.sql(
            f"INSERT INTO lake.dw.`sorted` SELECT * FROM lake.dw.whole "
            f"WHERE id >= {start} AND id < {start + 20}"
        )
    lake.sql(
        "CREATE TABLE picked AS SELECT * FROM VALUES (DATE'2024-01-03', 5L, 'k1', 1L), "
        "(DATE'2024-01-03', 5L, 'k1', 1L), (DATE'2024-01-05', 7L, 'k2', 2L), "
        "(DATE'2030-01-01', 999L, 'none', 0L), (NULL, NULL, NULL, NULL) AS t(day, id, name, v)"
    )
    lake.sql("CREATE TABLE lake.dw.picked USING iceberg AS SELECT * FROM picked")
    yield lake
    lake.sql("USE spark_catalog.default")
    for name in (*layouts, "`sorted`", "picked"):
        lake.sql(f"DROP TABLE lake.dw.{name}")
    lake.sql("DROP TABLE picked")


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.day = p.day", 2),
        ("SELECT b.id FROM lake.dw.by_day b JOIN lake.dw.picked p ON b.day = p.day", 2),
        ("SELECT b.id FROM lake.dw.history b JOIN picked p ON b.day = p.day", 2),
        # before 1.12, Iceberg fails if it compares a list of strings with a partition of NULL
        ("SELECT b.id FROM lake.dw.by_text b JOIN picked p ON b.name = p.name", 2),
        ("SELECT b.id, p.id FROM picked p LEFT JOIN lake.dw.by_day b ON b.day = p.day", 2),
        ("SELECT id FROM lake.dw.by_day WHERE day IN (SELECT day FROM picked WHERE id = 7)", 1),
        ("SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.day = p.day AND p.id = 1", 0),
        (
            "SELECT x.day, n FROM (SELECT day, count(v) n FROM lake.dw.by_day GROUP BY day) x "
            "JOIN picked p ON x.day = p.day",
            2,
        ),
        (
            "WITH b AS (SELECT * FROM lake.dw.by_day) SELECT x.v, y.v FROM b x, b y, picked p "
            "WHERE x.day = p.day AND y.day = p.day AND x.id = y.id",
            4,
        ),
        ("SELECT b.v FROM lake.dw.by_bucket b JOIN picked p ON b.id = p.id AND p.id < 6", 1),
        ("SELECT b.v FROM lake.dw.by_name b JOIN picked p ON b.name = p.name AND b.v = p.v", 6),
        ("SELECT b.v FROM lake.dw.`sorted` b JOIN picked p ON b.id = p.id", 1),
    ],
)
def test_joins_have_plain_sparks_rows_and_read_only_files_of_the_keys(tables, tmp_path, sql, files):
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert "RESTRICTED" in found.reasons.values()
    name = sql.partition("lake.dw.")[2].split()[0].strip("`)")
    read = [read.files for read in found.report.reads if read.table == f"lake.dw.{name}"]
    assert read == ([files] if files else [])


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT b.id FROM lake.dw.by_day b LEFT JOIN picked p ON b.day = p.day",
            "PRESERVED_SIDE",
        ),
        (
            "SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.day <= p.day",
            "KEYS_NOT_COMPARED_AS_COLUMNS",
        ),
        (
            "SELECT b.id FROM lake.dw.by_day VERSION AS OF {snapshot} b JOIN picked p "
            "ON b.day = p.day",
            "SCAN_NOT_RESTRICTABLE",
        ),
        (
            "SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.id = p.id",
            "NO_CONDITION_ON_PARTITION_COLUMN",
        ),
        (
            "SELECT b.id FROM lake.dw.by_day b WHERE b.day NOT IN (SELECT day FROM picked)",
            "CONDITION_NOT_SELF_CONTAINED",
        ),
    ],
)
def test_scans_of_iceberg_tables_that_are_read_whole_have_a_reason(tables, tmp_path, sql, reason):
    snapshot = tables.sql("SELECT snapshot_id FROM lake.dw.by_day.snapshots").head()[0]
    sql = sql.format(snapshot=snapshot)
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert found.reasons == {"b": reason}
    assert found.statement == sql


def test_a_table_of_metadata_is_read_whole(tables, tmp_path):
    sql = "SELECT f.file_path FROM lake.dw.by_day.files f JOIN picked p ON f.partition.day = p.day"
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql) != []
    assert found.statement == sql


def test_a_table_named_without_its_catalog_is_restricted(tables, tmp_path):
    tables.sql("USE lake.dw")
    try:
        sql = "SELECT by_day.id FROM by_day JOIN spark_catalog.default.picked p USING (day)"
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert (found.files("lake.dw.by_day"), len(found.rows)) == (2, 30)
    finally:
        tables.sql("USE spark_catalog.default")


def test_a_temporary_view_hides_a_table_of_the_current_catalog(tables, tmp_path):
    tables.sql("USE lake.dw")
    tables.sql("CREATE TEMPORARY VIEW by_bucket AS SELECT 5L AS id, 7 AS v")
    try:
        sql = "SELECT b.v FROM by_bucket b JOIN spark_catalog.default.picked p ON b.id = p.id"
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql) == [(7,), (7,)]
        assert found.reasons == {}
    finally:
        tables.sql("DROP VIEW by_bucket")
        tables.sql("USE spark_catalog.default")


def test_a_data_column_restricts_the_scan_with_key_predicate(tables, tmp_path):
    sql = "SELECT b.v FROM lake.dw.by_hour b JOIN picked p ON b.id = p.id"
    asked = Settings.of(switches={"key_predicate": True})
    plain = rows_of(tables, sql)
    whole, restricted = run(tables, sql, tmp_path), run(tables, sql, tmp_path, settings=asked)
    assert whole.rows == restricted.rows == plain
    assert whole.reasons == {"b": "NO_CONDITION_ON_PARTITION_COLUMN"}
    assert restricted.reasons == {"b": "RESTRICTED"}
    assert restricted.files("lake.dw.by_hour") == 1 < whole.files("lake.dw.by_hour")


LISTED, RANGES = False, True
MANY = {
    "a partition column": ("by_bucket", "id * 2", LISTED, 299),
    "a partition column, numbers in a row": ("by_bucket", "id", RANGES, 2 * 2),
    "a column of the sort order": ("`sorted`", "id * 2", RANGES, 2 * 100),
}


@pytest.mark.parametrize("kind", MANY)
def test_many_keys_are_a_list_for_partition_columns_and_else_a_range(tables, tmp_path, kind):
    """Iceberg compares a long list with partition values only."""
    table, id_, is_range, count = MANY[kind]
    tables.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW many AS SELECT {id_} AS id FROM range(300) "
        "WHERE id <> 50"
    )
    sql = f"SELECT b.v FROM lake.dw.{table} b JOIN many m ON b.id = m.id"
    found = run(tables, sql, tmp_path)
    (filter_,) = found.report.descriptor.row_filters
    assert (filter_.is_range, len(filter_.values)) == (is_range, count)
    assert found.rows == rows_of(tables, sql)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_timestamp_keys_find_their_files_in_each_time_zone(tables, tmp_path, zone):
    tables.conf.set("spark.sql.session.timeZone", zone)
    try:
        sql = (
            "SELECT b.id, b.at FROM lake.dw.by_hour b JOIN (SELECT DISTINCT at "
            "FROM lake.dw.whole WHERE id IN (0, 1, 50)) w ON b.at = w.at"
        )
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert [row[0] for row in found.rows] == [0, 1, 50]
        assert found.files("lake.dw.by_hour") == 2
    finally:
        tables.conf.unset("spark.sql.session.timeZone")


TABLES = {"at": "by_hour", "day": "by_day", "name": "by_name"}


@pytest.mark.parametrize("column", TABLES)
def test_too_many_keys_become_one_range(tables, tmp_path, column):
    table = TABLES[column]
    sql = (
        f"SELECT b.id FROM lake.dw.{table} b "
        "JOIN (SELECT * FROM lake.dw.whole WHERE id BETWEEN 40 AND 87) w "
        f"ON b.{column} = w.{column}"
    )
    found = run(tables, sql, tmp_path, max_keys=2)
    assert found.rows == rows_of(tables, sql)
    (filter_,) = found.report.descriptor.row_filters
    assert (filter_.is_range, len(filter_.values)) == (True, 2)
    if column == "at":  # 48 quarters of an hour
        assert found.files(f"lake.dw.{table}") == 12


def test_a_metadata_table_as_key_source_changes_no_rows(tables, tmp_path):
    sql = (
        "SELECT b.id FROM lake.dw.by_day b JOIN lake.dw.picked.snapshots s "
        "ON b.day = CAST(s.committed_at AS date)"
    )
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)


def test_insert_and_create_table_as_select_read_only_files_of_the_keys(tables, tmp_path):
    query = "SELECT b.* FROM lake.dw.by_day b JOIN picked p ON b.day = p.day"
    for place in ("lake.dw.made", "default.made"):
        found = run(tables, f"CREATE TABLE {place} AS {query}", tmp_path)
        assert "DATE'2024-01-03'" in found.statement
        assert rows_of(tables, f"SELECT * FROM {place}") == rows_of(tables, query)
        found = run(tables, f"INSERT INTO {place} {query}", tmp_path)
        assert OVER_CONNECT or found.files("lake.dw.by_day") == 2
        assert rows_of(tables, f"SELECT * FROM {place}") == sorted(
            rows_of(tables, query) * 2, key=repr
        )
        found = run(tables, f"INSERT OVERWRITE {place} {query}", tmp_path)
        assert rows_of(tables, f"SELECT * FROM {place}") == rows_of(tables, query)
        tables.sql(f"DROP TABLE {place}")


def test_rows_written_between_two_tasks_are_read(tables, tmp_path):
    sql = "SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.day = p.day"

    def written():
        tables.sql("INSERT INTO lake.dw.by_day VALUES (901, DATE'2024-01-03', NULL, NULL, 1)")

    try:
        found = run_apart(tables, sql, tmp_path, written)
        assert (901,) in found.rows
        assert found.rows == rows_of(tables, sql)
        assert found.files("lake.dw.by_day") == 3
    finally:
        tables.sql("DELETE FROM lake.dw.by_day WHERE id = 901")


@needs_jvm  # PySpark registers functions with the session's classic client
def test_keys_of_python_functions_are_used_only_if_allowed(tables, tmp_path):
    tables.udf.register("doubled", lambda v: v * 2, "long")
    sql = "SELECT b.id FROM lake.dw.by_day b JOIN picked p ON b.day = p.day WHERE doubled(p.v) = 4"
    whole = run(tables, sql, tmp_path)
    allowed = run(tables, sql, tmp_path, switches={"python_functions": True})
    assert whole.rows == allowed.rows == rows_of(tables, sql)
    assert (whole.reasons, allowed.reasons) == ({"b": "PYTHON_FUNCTION"}, {"b": "RESTRICTED"})
    assert allowed.files("lake.dw.by_day") == 1
