"""Columns by which Delta skips files: mapped, generated, clustered, of every type."""

from __future__ import annotations

import pytest

from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.statement.settings import Settings
from tests.lakes.databases import drop_database
from tests.lakes.delta.generated import created
from tests.lakes.delta.scanned import files_read
from tests.lakes.runs import rows_of, run

ANY_COLUMN = Settings.of(switches={"key_predicate": True})


@pytest.fixture(scope="module")
def columns(lake):
    lake.sql("CREATE DATABASE columns")
    lake.sql("USE columns")
    yield lake
    lake.sql("USE default")
    drop_database(lake, "columns")


TYPES = {
    "tinyint": "CAST(id AS tinyint)",
    "int": "CAST(id - 3 AS int)",
    "bigint": "id * 10000000000",
    "string": "concat('k ', id, CASE WHEN id = 2 THEN '''%/' ELSE '' END)",
    "varchar(9)": "concat('v', id)",
    "char(5)": "concat('c', id)",
    "date": "date_add(DATE'1899-12-30', CAST(id AS int))",
    "timestamp": "timestamp_micros(id * 1000001 - 2000000)",
}


@pytest.mark.parametrize(
    ("type_", "layout"),
    [
        *((each, "PARTITIONED BY (k)") for each in TYPES),
        *((each, "CLUSTER BY (k)") for each in ("int", "string", "date", "timestamp")),
    ],
)
def test_keys_of_each_type_skip_files(columns, tmp_path, type_, layout):
    columns.sql("DROP TABLE IF EXISTS typed")
    columns.sql("DROP TABLE IF EXISTS keys")
    columns.sql(f"CREATE TABLE typed (id bigint, k {type_}) USING delta {layout}")
    steps = ((0, 6),) if "PART" in layout else ((id_, id_ + 1) for id_ in range(6))
    for start, stop in steps:
        rows = f"SELECT id, {TYPES[type_]} FROM range({start}, {stop}, 1, 1)"
        columns.sql(f"INSERT INTO typed {rows}")
    columns.sql("INSERT INTO typed VALUES (77, NULL)")
    columns.sql("CREATE TABLE keys USING parquet AS SELECT k FROM typed WHERE id IN (1, 2, 77)")
    sql = "SELECT t.id FROM typed t JOIN keys s ON t.k = s.k"
    merge = "MERGE INTO typed t USING keys s ON t.k = s.k WHEN MATCHED THEN DELETE"
    plain = rows_of(columns, sql)
    found = run(columns, sql, tmp_path)
    assert found.rows == plain == [(1,), (2,)]
    if "char" in type_:
        assert found.reasons == {"t": "KEYS_NOT_COMPARED_AS_COLUMNS"}
        return
    ran = []
    scans = files_read(columns, "typed", lambda: ran.append(run(columns, merge, tmp_path)))
    assert rows_of(columns, "SELECT id FROM typed") == [(0,), (3,), (4,), (5,), (77,)]
    assert found.reasons == {"t": "RESTRICTED"}
    assert found.files("columns.typed") == 2
    assert ran[0].reasons == {"t": "RESTRICTED"}
    assert max(scans) == 2


def test_a_table_with_column_mapping_is_restricted(columns, tmp_path):
    columns.sql(
        "CREATE TABLE mapped (id bigint, `the day` date, v bigint) USING delta "
        "PARTITIONED BY (`the day`) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    columns.sql(
        "INSERT INTO mapped SELECT id, date_add(DATE'2024-01-01', CAST(id % 9 AS int)), id "
        "FROM range(0, 90, 1, 1)"
    )
    columns.sql("ALTER TABLE mapped RENAME COLUMN `the day` TO ds")
    columns.sql("ALTER TABLE mapped RENAME COLUMN v TO w")
    sql = "SELECT m.w FROM mapped m JOIN (SELECT DATE'2024-01-03' AS ds) k ON m.ds = k.ds"
    found = run(columns, sql, tmp_path)
    assert found.rows == rows_of(columns, sql) != []
    assert (found.reasons, found.files("columns.mapped")) == ({"m": "RESTRICTED"}, 1)


def test_a_table_with_liquid_clustering_is_restricted(columns, tmp_path):
    columns.sql("CREATE TABLE clustered (id bigint, v bigint, w bigint) USING delta CLUSTER BY (v)")
    for start in range(0, 50, 10):
        columns.sql(
            "INSERT INTO clustered SELECT /*+ COALESCE(1) */ id, id, id "
            f"FROM range({start}, {start + 10})"
        )
    table = SparkCatalog(columns).table("clustered")
    assert (table.clustered_by, table.partitioned_by) == (("v",), ())
    sql = "SELECT c.id FROM clustered c JOIN (SELECT 7L AS v UNION ALL SELECT 42L) k ON c.v = k.v"
    found = run(columns, sql, tmp_path)
    assert found.rows == rows_of(columns, sql) == [(42,), (7,)]
    assert (found.reasons, found.files("columns.clustered")) == ({"c": "RESTRICTED"}, 2)


def test_columns_without_statistics_do_not_restrict_a_table(columns, tmp_path):
    columns.sql(
        "CREATE TABLE indexed (a bigint, b bigint) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')"
    )
    columns.sql(
        "CREATE TABLE named (a bigint, b bigint) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'b')"
    )
    for name, column in (("indexed", "a"), ("named", "b")):
        columns.sql(f"INSERT INTO {name} SELECT id, id FROM range(10)")
        table = SparkCatalog(columns).table(name)
        assert (table.bounded, table.clustered_by) == ((column,), ())
        for other in "ab":
            sql = f"SELECT i.a FROM {name} i JOIN (SELECT 7L AS k) x ON i.{other} = x.k"
            found = run(columns, sql, tmp_path, settings=ANY_COLUMN)
            assert found.rows == rows_of(columns, sql) == [(7,)]
            assert (found.reasons["i"] == "RESTRICTED") == (other == column)


def test_a_table_with_deletion_vectors_is_restricted(columns, tmp_path):
    columns.sql(
        "CREATE TABLE deleted USING delta PARTITIONED BY (v) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') AS "
        "SELECT id, id % 5 AS v FROM range(0, 100, 1, 1)"
    )
    columns.sql("DELETE FROM deleted WHERE id IN (3, 8, 11)")
    sql = "SELECT d.id FROM deleted d JOIN (SELECT 3L AS v) k ON d.v = k.v"
    found = run(columns, sql, tmp_path)
    assert found.rows == rows_of(columns, sql)
    assert len(found.rows) == 18
    assert found.files("columns.deleted") == 1


def test_nested_columns_of_the_same_name_are_not_clustering_columns(columns, tmp_path):
    columns.sql("CREATE TABLE nested (id bigint, s struct<v: bigint>) USING delta CLUSTER BY (s.v)")
    columns.sql("INSERT INTO nested VALUES (1, named_struct('v', 2L)), (2, NULL)")
    assert SparkCatalog(columns).table("nested").clustered_by == ()
    sql = "SELECT n.id FROM nested n JOIN (SELECT 2L AS v) k ON n.s.v = k.v"
    assert run(columns, sql, tmp_path).rows == rows_of(columns, sql) == [(1,)]


def test_a_generated_partition_column_skips_files_by_its_source_column(columns, tmp_path):
    created(columns, "columns.made")
    table = SparkCatalog(columns).table("made")
    assert (table.partitioned_by, table.clustered_by) == (("day",), ("day", "at"))
    columns.sql("INSERT INTO made (id, at) SELECT id, timestamp_seconds(id * 43200) FROM range(40)")
    columns.sql("CREATE TABLE times AS SELECT at FROM made WHERE id IN (4, 5, 30)")
    sql = "SELECT m.id FROM made m JOIN times t ON m.at = t.at"
    found = run(columns, sql, tmp_path)
    assert found.rows == rows_of(columns, sql) == [(30,), (4,), (5,)]
    (planned,) = found.report.descriptor.planned_files
    assert planned.partitions == 2
    assert found.files("columns.made") == planned.files
    merge = "MERGE INTO made m USING times t ON m.at = t.at WHEN MATCHED THEN DELETE"
    scans = files_read(columns, "made", lambda: run(columns, merge, tmp_path))
    assert len(rows_of(columns, "SELECT id FROM made")) == 37
    assert max(scans) < 20
