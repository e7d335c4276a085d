"""Joins with Hudi tables: the rows are Spark's own, and only the files of the keys are read."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.gates import GateClosed, NothingToDo
from airflow_hive_opt.statement.settings import Settings
from tests.lakes.runs import rows_of, run, run_apart

DAYS = 10
ROWS = (
    f"SELECT id, CAST(id % 3 AS int) AS v, date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) "
    "AS day, concat('k', id % 3) AS kind FROM range(100) "
    "UNION ALL SELECT 300L, 1, NULL, NULL"
)
PATHS = "hoodie.datasource.write"
# name: type of table, partition columns, further properties
TABLES = {
    "by_day": ("cow", "day", ""),
    "merged": ("mor", "day", ""),
    "by_two": ("mor", "day, kind", ""),
    "plain_folders": (
        "cow",
        "day, kind",
        f"'{PATHS}.hive_style_partitioning' = 'false', '{PATHS}.partitionpath.urlencode' = 'true'",
    ),
    "whole": ("cow", "", ""),
}


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE DATABASE dw")
    lake.sql("USE dw")
    for name, (type_, partitions, more) in TABLES.items():
        layout = f"PARTITIONED BY ({partitions})" if partitions else ""
        lake.sql(
            f"CREATE TABLE {name} (id bigint, v int, day date, kind string) USING hudi {layout} "
            f"TBLPROPERTIES (type = '{type_}', primaryKey = 'id'{', ' if more else ''}{more})"
        )
        lake.sql(
            f"INSERT INTO {name} SELECT {', '.join(lake.table(name).columns[5:])} FROM ({ROWS})"
        )
    lake.sql("UPDATE merged SET v = 9 WHERE id IN (12, 23)")  # in log files
    lake.sql(
        "CREATE TABLE picked USING parquet AS SELECT * FROM VALUES "
        "(DATE'2024-01-03', 2L, 'k1', 9), (DATE'2024-01-03', 2L, 'k1', 9), "
        "(DATE'2024-01-05', 4L, 'k2', 8), (DATE'2030-01-01', 999L, 'none', 7), "
        "(NULL, NULL, NULL, NULL) AS t(day, id, kind, v)"
    )
    yield lake
    lake.sql("USE default")
    lake.sql("DROP DATABASE dw CASCADE")


def literals(sql: str) -> str:
    """The statement with the list that a user would write by hand."""
    return f"{sql} AND b.day IN (DATE'2024-01-03', DATE'2024-01-05', DATE'2030-01-01')"


def planned(outcome):
    (found,) = outcome.report.descriptor.planned_files
    return found


@pytest.mark.parametrize("name", [name for name in TABLES if name != "whole"])
def test_rows_and_files_of_a_join_are_those_of_the_partition_keys(tables, tmp_path, name):
    sql = f"SELECT b.id, b.v, b.day, b.kind FROM {name} b JOIN picked p ON b.day = p.day"
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql) == rows_of(tables, literals(sql))
    assert found.reasons == {"b": "RESTRICTED"}
    files = 2 if TABLES[name][1] == "day" else 6
    assert (planned(found).files, planned(found).partitions) == (files, files)
    (read,) = (each for each in found.report.reads if each.table.endswith(f"dw.{name}"))
    assert (read.files, read.bytes) == (planned(found).files, planned(found).bytes)
    assert planned(found).total_files == (DAYS + 1 if files == 2 else 3 * DAYS + 1)


BY_DAY = "day IN (DATE'2024-01-03', DATE'2024-01-05', DATE'2030-01-01')"


@pytest.mark.parametrize(
    ("sql", "by_hand", "files"),
    [
        ("SELECT b.id, p.id FROM picked p LEFT JOIN {by_day} b ON b.day = p.day", BY_DAY, 2),
        (
            "SELECT b.id FROM {by_day} b WHERE b.day IN (SELECT day FROM picked WHERE id = 4)",
            "day = DATE'2024-01-05'",
            1,
        ),
        (
            "SELECT b.id FROM {by_day} b JOIN picked p ON b.day = p.day AND p.id = 999",
            "day = DATE'2030-01-01'",
            0,
        ),
        ("SELECT b.id FROM {by_day} b JOIN picked p ON b.day = p.day AND p.id < 0", "1 = 0", 0),
        ("SELECT b.* FROM {merged} b JOIN picked p ON b.day = p.day", BY_DAY, 2),
        (
            "SELECT b.id, b._hoodie_record_key FROM {merged} b JOIN picked p ON b.day = p.day",
            BY_DAY,
            2,
        ),
        (
            "SELECT b.id FROM {by_two} b JOIN picked p ON b.day = p.day AND b.kind = p.kind",
            f"{BY_DAY} AND kind IN ('k1', 'k2', 'none')",
            4,
        ),
        (
            "SELECT b.id FROM {plain_folders} b JOIN picked p ON b.kind = p.kind AND p.v = 9",
            "kind = 'k1'",
            10,
        ),
        (
            "WITH b AS (SELECT day, max(v) v FROM {merged} GROUP BY day) "
            "SELECT b.v FROM b JOIN picked p ON b.day = p.day",
            BY_DAY,
            2,
        ),
    ],
)
def test_statements_with_keys_restrict_hudi_tables(tables, tmp_path, sql, by_hand, files):
    plain = sql.format(**{name: name for name in TABLES})
    hand = sql.format(**{name: f"(SELECT * FROM {name} WHERE {by_hand})" for name in TABLES})
    found = run(tables, plain, tmp_path)
    assert found.rows == rows_of(tables, plain) == rows_of(tables, hand)
    assert "RESTRICTED" in found.reasons.values()
    assert planned(found).files == files


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT b.id FROM by_day b LEFT JOIN picked p ON b.day = p.day", "PRESERVED_SIDE"),
        (
            "SELECT b.id FROM by_day b JOIN picked p ON b.id = p.id",
            "NO_CONDITION_ON_PARTITION_COLUMN",
        ),
        ("SELECT b.id FROM whole b JOIN picked p ON b.day = p.day", None),
        (
            "SELECT b.id FROM by_day TIMESTAMP AS OF '{instant}' b JOIN picked p ON b.day = p.day",
            "SCAN_NOT_RESTRICTABLE",
        ),
    ],
)
def test_scans_of_hudi_tables_that_are_read_whole_have_a_reason(tables, tmp_path, sql, reason):
    instant = tables.sql("SELECT max(_hoodie_commit_time) FROM by_day").head()[0]
    sql = sql.format(instant=instant)
    found = run(tables, sql, tmp_path)
    assert found.rows == rows_of(tables, sql)
    assert found.reasons.get("b") == reason
    assert found.statement == sql


BY_VALUE = Settings.of(switches={"key_predicate": True})


@pytest.mark.parametrize("name", ["by_day", "merged", "whole"])
def test_a_data_column_restricts_the_scan_with_key_predicate(tables, tmp_path, name):
    """The ids of a day are 10 apart, so the bounds of each day's file contain most ids."""
    sql = f"SELECT b.id, b.v FROM {name} b JOIN picked p ON b.id = p.id"
    found = run(tables, sql, tmp_path, settings=BY_VALUE)
    assert found.rows == rows_of(tables, sql)
    assert found.reasons == {"b": "RESTRICTED"}
    hand = rows_of(tables, f"{sql} WHERE b.id IN (2L, 4L, 999L)")
    assert found.rows == hand
    assert planned(found).files == (1 if name == "whole" else 5)


def test_values_in_log_files_are_found(tables, tmp_path):
    """9 is in no base file: two updates have written it to log files."""
    sql = "SELECT b.id, b.v, b.day FROM merged b JOIN picked p ON b.v = p.v"
    found = run(tables, sql, tmp_path, settings=BY_VALUE)
    assert found.rows == rows_of(tables, sql)
    assert sorted({row[0] for row in found.rows}) == [12, 23]
    assert planned(found).files == 2


def test_many_ids_become_a_range(tables, tmp_path):
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW many AS SELECT id * 2 AS id FROM range(300)")
    sql = "SELECT b.id FROM by_day b JOIN many m ON b.id = m.id"
    found = run(tables, sql, tmp_path, settings=BY_VALUE)
    (filter_,) = found.report.descriptor.row_filters
    assert (filter_.is_range, len(filter_.values)) == (True, 200)
    assert found.rows == rows_of(tables, sql)


def test_too_many_keys_become_one_range(tables, tmp_path):
    sql = "SELECT b.id FROM merged b JOIN picked p ON b.day = p.day"
    found = run(tables, sql, tmp_path, max_keys=2)
    assert found.rows == rows_of(tables, sql)
    assert found.report.descriptor.row_filters[0].is_range
    assert planned(found).files == 8


def test_insert_and_create_table_as_select_read_only_files_of_the_keys(tables, tmp_path):
    query = "SELECT b.id, b.v, b.kind, b.day FROM by_day b JOIN picked p ON b.day = p.day"
    for using in ("parquet", "hudi"):
        found = run(tables, f"CREATE TABLE made USING {using} AS {query}", tmp_path)
        assert "DATE'2024-01-03'" in found.statement
        columns = "SELECT id, v, kind, day FROM made"
        assert rows_of(tables, columns) == rows_of(tables, query)
        found = run(tables, f"INSERT INTO made {query}", tmp_path)
        assert planned(found).files == 2
        tables.sql("DROP TABLE made")


def test_rows_written_between_two_tasks_are_read(tables, tmp_path):
    sql = "SELECT b.id FROM merged b JOIN picked p ON b.day = p.day"

    def written():
        tables.sql("INSERT INTO merged VALUES (901, 1, 'k', DATE'2024-01-03')")

    try:
        found = run_apart(tables, sql, tmp_path, written)
        assert (901,) in found.rows
        assert found.rows == rows_of(tables, sql)
    finally:
        tables.sql("DELETE FROM merged WHERE id = 901")


def test_gates_count_the_files_of_hudi_tables(tables, tmp_path):
    sql = "SELECT b.id FROM by_day b JOIN picked p ON b.day = p.day"
    size = planned(run(tables, sql, tmp_path, max_partitions=2)).bytes
    with pytest.raises(GateClosed, match="would read 2 partitions, but max_partitions is 1"):
        run(tables, sql, tmp_path, max_partitions=1)
    with pytest.raises(GateClosed, match="max_bytes is"):
        run(tables, sql, tmp_path, max_bytes=size - 1)
    with pytest.raises(NothingToDo):
        run(tables, f"{sql} AND p.id = 999", tmp_path, on_empty="skip")
    whole = "SELECT b.v FROM whole b JOIN picked p ON b.id = p.id AND p.id = 999"
    assert run(tables, whole, tmp_path, settings=BY_VALUE).rows == []


@pytest.mark.parametrize("encoded", ["true", "false"])
@pytest.mark.parametrize("type_", ["cow", "mor"])
def test_text_partitions_that_folder_names_change_have_plain_sparks_rows(
    tables, tmp_path, type_, encoded
):
    """Hudi reads the value from the folder's name, so both runs see the same value."""
    name = f"named_{type_}_{encoded}"  # Hudi's sync keeps more tables than DROP TABLE removes
    texts = ["", "a b", "__HIVE_DEFAULT_PARTITION__", "001", "it\\'s", "1"]
    texts += (
        ["a/b", "a=b", "x%2Fy"] if encoded == "true" else []
    )  # their folders fail in Hudi itself
    listed = ", ".join(f"({at}L, '{text}')" for at, text in enumerate(texts))
    tables.sql(
        f"CREATE TABLE {name} (id bigint, v int, name string) USING hudi PARTITIONED BY (name) "
        f"TBLPROPERTIES (type = '{type_}', primaryKey = 'id', "
        f"'{PATHS}.partitionpath.urlencode' = '{encoded}')"
    )
    try:
        tables.sql(f"CREATE TEMPORARY VIEW texts AS SELECT * FROM VALUES {listed} AS t(id, name)")
        tables.sql(
            f"INSERT INTO {name} SELECT id, 1, name FROM texts UNION ALL SELECT 99L, 1, NULL"
        )
        tables.sql(f"UPDATE {name} SET v = 2 WHERE id IN (0, 1, 3)")
        sql = f"SELECT b.id, b.v, b.name FROM {name} b JOIN texts t ON b.name = t.name"
        found = run(tables, sql, tmp_path)
        assert found.reasons == {"b": "RESTRICTED"}
        assert found.rows == rows_of(tables, sql)
        assert {0, 2, 99}.isdisjoint(row[0] for row in found.rows)
    finally:
        tables.sql(f"DROP TABLE {name}")
        tables.sql("DROP VIEW IF EXISTS texts")


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int", "5, -3"),
        ("date", "DATE'2024-01-01', DATE'1950-12-31'"),
        ("boolean", "true"),
        ("decimal(5,2)", "CAST(1.50 AS decimal(5,2))"),
        ("timestamp", "TIMESTAMP'2024-01-01 00:00:00'"),
    ],
)
def test_types_of_partition_columns_that_restrict_a_hudi_table(tables, tmp_path, type_, values):
    tables.sql(
        f"CREATE TABLE typed (id bigint, p {type_}) USING hudi PARTITIONED BY (p) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    try:
        tables.sql(f"CREATE TEMPORARY VIEW listed AS SELECT explode(array({values})) AS p")
        tables.sql(
            "INSERT INTO typed SELECT row_number() OVER (ORDER BY p), p FROM listed "
            "UNION ALL SELECT 98L, NULL"
        )
        sql = "SELECT b.id, b.p FROM typed b JOIN listed l ON b.p = l.p"
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert (found.reasons.get("b") == "RESTRICTED") == (type_ in ("int", "date"))
    finally:
        tables.sql("DROP TABLE typed")
        tables.sql("DROP VIEW listed")


def test_a_timestamp_key_generator_prevents_restriction(tables, tmp_path, tmp_path_factory, caplog):
    folder = tmp_path_factory.mktemp("by_time") / "table"
    frame = tables.sql("SELECT id, id * 86400000 AS at, 1 AS v FROM range(5)")
    options = {
        "hoodie.table.name": "by_time",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "at",
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.TimestampBasedKeyGenerator"
        ),
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    }
    frame.write.format("hudi").options(**options).save(str(folder))
    tables.sql(f"CREATE TABLE by_time USING hudi LOCATION '{folder}'")
    try:
        tables.sql("CREATE TEMPORARY VIEW times AS SELECT id * 86400000 AS at FROM range(2)")
        sql = "SELECT b.id FROM by_time b JOIN times t ON b.at = t.at"
        found = run(tables, sql, tmp_path)
        assert found.reasons == {}
        assert found.statement == sql
        assert found.rows == rows_of(tables, sql)
        assert "TimestampBasedKeyGenerator, partition names differ from the values" in caplog.text
    finally:
        tables.sql("DROP TABLE by_time")
        tables.sql("DROP VIEW times")


def test_a_small_hudi_table_gives_keys(tables, tmp_path):
    """The size of a table without partitions is known; that of another one is not."""
    tables.sql(
        "CREATE TABLE changed USING hudi TBLPROPERTIES (primaryKey = 'id') AS "
        "SELECT DISTINCT id, day FROM picked WHERE id < 5"
    )
    try:
        sql = "SELECT b.id FROM by_day b JOIN changed p ON b.day = p.day"
        found = run(tables, sql, tmp_path)
        assert found.rows == rows_of(tables, sql)
        assert (found.reasons["b"], planned(found).files) == ("RESTRICTED", 2)
    finally:
        tables.sql("DROP TABLE changed")
