"""Keys from an Iceberg table's own list of partitions. A day without rows shows what was asked.

Its rows are deleted by position, so the list still has it. Rows are always those of plain Spark.
"""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.local_task.key_sets import KeySets
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.local_task.engine import SparkEngine
from tests.lakes.runs import Outcome, rows_of, run

JOIN = "SELECT b.id FROM lake.listed.big b JOIN lake.listed.days d ON b.day = d.day"


@pytest.fixture(scope="module")
def tables(lake):
    lake.sql("CREATE NAMESPACE lake.listed")
    rows = "SELECT id, date_add(DATE'2024-01-01', cast(id % 20 as int)) AS day, 1 AS v"
    lake.sql(
        f"CREATE TABLE lake.listed.big USING iceberg PARTITIONED BY (day) AS {rows} FROM range(200)"
    )
    yield lake
    lake.sql("DROP TABLE lake.listed.big")


@pytest.fixture
def days(tables):
    """The small table: 2 rows on each of 3 days, of which the last one has no rows any more."""
    tables.sql(
        "CREATE TABLE lake.listed.days (day date, kind int, v int) USING iceberg "
        "PARTITIONED BY (day, kind) "
        "TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read')"
    )
    tables.sql(
        "INSERT INTO lake.listed.days SELECT date_add(DATE'2024-01-03', cast(id % 3 as int)), "
        "1, cast(id as int) FROM range(6)"
    )
    tables.sql("DELETE FROM lake.listed.days WHERE v IN (2, 5)")
    yield tables
    tables.sql("DROP TABLE lake.listed.days")


def keys(session, sql: str, path) -> tuple[str, ...]:
    """The values of the restricted column, after a comparison of the rows."""
    found = run(session, sql, path)
    assert found.rows == rows_of(session, sql)
    assert found.reasons["b"] == "RESTRICTED"
    return values(found)


def values(found: Outcome) -> tuple[str, ...]:
    """The days that the scan of the big table is restricted to."""
    (filter_,) = (each for each in found.report.descriptor.row_filters if each.scan.alias == "b")
    return filter_.values


ROWS = ("2024-01-03", "2024-01-04")
LISTED = (*ROWS, "2024-01-05")


def test_keys_come_from_the_list_of_partitions(days, tmp_path):
    assert days.sql("SELECT count(DISTINCT day) FROM lake.listed.days").head()[0] == 2
    assert keys(days, JOIN, tmp_path) == LISTED


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"{JOIN} WHERE d.day > DATE'2024-01-03'", LISTED[1:]),
        (f"{JOIN} AND d.kind = 1", LISTED),
        (f"{JOIN} AND d.kind = 2", ()),
        (f"{JOIN} AND d.v < 9", ROWS),
        (JOIN.replace("lake.listed.days d", "(SELECT day FROM lake.listed.days) d"), ROWS),
    ],
)
def test_conditions_on_partition_columns_alone_use_the_list_of_partitions(
    days, tmp_path, sql, expected
):
    """On other columns than those of the partitions, only the rows can decide."""
    assert keys(days, sql, tmp_path) == expected


def test_an_old_snapshot_gives_no_keys(days, tmp_path):
    (snapshot,) = days.sql("SELECT max(snapshot_id) FROM lake.listed.days.snapshots").head()
    sql = JOIN.replace("days d", f"days VERSION AS OF {snapshot} d")
    found = run(days, sql, tmp_path)
    assert found.rows == rows_of(days, sql)
    assert found.reasons["b"] == "KEY_SOURCE_NOT_DETERMINISTIC"


def test_keys_of_a_branch_come_from_rows(days, tmp_path):
    days.sql("ALTER TABLE lake.listed.days CREATE BRANCH old")
    days.sql("INSERT INTO lake.listed.days VALUES (DATE'2024-01-09', 1, 9)")
    assert keys(days, JOIN.replace("days d", "days.branch_old d"), tmp_path) == ROWS


def test_keys_of_a_column_that_was_partitioned_later_come_from_rows(days, tmp_path):
    days.sql("ALTER TABLE lake.listed.days DROP PARTITION FIELD day")
    days.sql("INSERT INTO lake.listed.days VALUES (DATE'2024-01-09', 1, 9)")
    days.sql("ALTER TABLE lake.listed.days ADD PARTITION FIELD day")
    assert keys(days, JOIN, tmp_path) == (*ROWS, "2024-01-09")


@pytest.mark.parametrize("transform", ["months(day)", "bucket(4, day)"])
def test_keys_of_a_transformed_column_come_from_rows(tables, tmp_path, transform):
    """The list has the transform's values, which are no keys."""
    tables.sql(
        f"CREATE TABLE lake.listed.months (day date) USING iceberg PARTITIONED BY ({transform})"
    )
    tables.sql("INSERT INTO lake.listed.months VALUES (DATE'2024-01-03'), (DATE'2024-01-04')")
    try:
        assert keys(tables, JOIN.replace("days d", "months d"), tmp_path) == ROWS
    finally:
        tables.sql("DROP TABLE lake.listed.months")


def test_the_list_of_partitions_knows_renamed_columns_and_added_fields(days, tmp_path):
    days.sql("ALTER TABLE lake.listed.days RENAME COLUMN day TO at")
    days.sql("ALTER TABLE lake.listed.days ADD PARTITION FIELD bucket(2, v)")
    days.sql("INSERT INTO lake.listed.days VALUES (DATE'2024-01-09', 1, 9)")
    assert keys(days, JOIN.replace("= d.day", "= d.at"), tmp_path) == (*LISTED, "2024-01-09")


def test_keys_of_a_cached_table_come_from_rows(days, tmp_path):
    """Another application's commit is in the list, and not in the cached rows."""
    days.sql("CACHE TABLE lake.listed.days")
    try:
        assert keys(days, JOIN, tmp_path) == ROWS
    finally:
        days.sql("UNCACHE TABLE lake.listed.days")


def test_keys_come_from_rows_if_the_session_reads_a_branch(days, tmp_path):
    days.conf.set("spark.wap.branch", "staged")
    try:
        assert keys(days, JOIN, tmp_path) == ROWS
    finally:
        days.conf.unset("spark.wap.branch")


def test_a_merge_with_listed_keys_has_plain_sparks_result(days, tmp_path):
    sql = (
        "MERGE INTO {t} b USING lake.listed.days d ON b.day = d.day AND b.id = d.v + 2 "
        "WHEN MATCHED THEN UPDATE SET v = 7 "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (-1, d.day, d.v)"
    )
    for name in ("ours", "plain"):
        days.sql(
            f"CREATE TABLE lake.listed.{name} USING iceberg PARTITIONED BY (day) "
            "AS SELECT * FROM lake.listed.big"
        )
    try:
        found = run(days, sql.format(t="lake.listed.ours"), tmp_path)
        assert values(found) == LISTED
        days.sql(sql.format(t="lake.listed.plain"))
        ours, plain = (rows_of(days, f"SELECT * FROM lake.listed.{n}") for n in ("ours", "plain"))
        assert ours == plain
        assert [row for row in ours if row[0] == -1]
    finally:
        for name in ("ours", "plain"):
            days.sql(f"DROP TABLE lake.listed.{name}")


def test_keys_for_a_hive_table_come_from_rows(days, tmp_path):
    """There a key too many would keep rows that match nothing."""
    days.sql("CREATE TABLE fact (id INT, day DATE) USING parquet PARTITIONED BY (day)")
    days.sql("INSERT INTO fact SELECT id, day FROM lake.listed.big")
    days.sql(  # one row a day
        "DELETE FROM lake.listed.days WHERE v > 2"
    )
    try:
        sql = "SELECT b.id FROM fact b JOIN lake.listed.days d ON b.day = d.day"
        found = run(days, sql, tmp_path)
        assert found.rows == rows_of(days, sql)
        (target,) = found.report.descriptor.targets
        assert sorted(part.values[0] for part in target.partitions) == list(ROWS)
    finally:
        days.sql("DROP TABLE fact")


@pytest.mark.parametrize(("listed", "count", "unique"), [(True, 3, False), (False, 2, True)])
def test_keys_from_the_list_of_partitions_are_never_unique(days, listed, count, unique):
    """The list does not count rows, so it must not decide that a join is redundant."""
    days.sql("DELETE FROM lake.listed.days WHERE v > 2")  # one row a day
    decisions = plan(JOIN, SparkCatalog(days)).decisions
    (decision,) = (each for each in decisions if each.scan.alias == "b")
    (source,) = decision.sources
    found = KeySets(SparkEngine(days, KeyBounds(), {}, listed), lambda _: ()).of(source)
    assert (found.count, found.unique) == (count, unique)
