"""Partitions that come, go or change between the local task and the map join."""

from __future__ import annotations

import pytest
from upath import UPath

from tests.spark.stages import job_of, join, map_join, prune

FAST = "SELECT f.id, f.p FROM fact f JOIN keys k ON f.p = k.p"
SKELETON = "SELECT f.id, f.p FROM fact f JOIN keys k ON f.p + 0 = k.p"


@pytest.fixture
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS staleness")
    spark.sql("USE staleness")
    spark.sql("CREATE TABLE fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql("INSERT INTO fact SELECT CAST(id AS INT), CAST(id AS INT) FROM range(5)")
    spark.sql("CREATE TABLE keys STORED AS PARQUET AS SELECT * FROM VALUES (1), (2), (8) AS k(p)")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE staleness CASCADE")


def between(spark, tmp_path, sql: str, *changes: str):
    job, path = job_of(sql), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    for change in changes:
        spark.sql(change)
    return map_join(spark, job, path, pruned.descriptor.digest)


@pytest.mark.parametrize("sql", [FAST, SKELETON])
def test_one_application_does_not_look_up_partitions_again(spark, tmp_path, tables, sql):
    job, path = job_of(sql), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    spark.sql("INSERT INTO fact PARTITION (p = 8) VALUES (80)")
    spark.sql("ALTER TABLE fact DROP PARTITION (p = 1)")
    result = join(spark, job, pruned, path)
    assert result.rows == ((2, 2),)
    assert "prelaunch" not in result.report.work
    assert (result.report.appeared, result.report.vanished) == (0, 0)


def by_list(spark, sql: str, *partitions: int) -> list[tuple]:
    """The rows with the partitions that ought to be read written in."""
    listed = ", ".join(map(str, partitions))
    return sorted(map(tuple, spark.sql(f"{sql} AND f.p IN ({listed})").collect()))


def test_a_new_partition_that_matches_the_keys_is_read(spark, tmp_path, tables):
    result = between(spark, tmp_path, FAST, "INSERT INTO fact PARTITION (p = 8) VALUES (80)")
    assert sorted(result.rows) == [(1, 1), (2, 2), (80, 8)] == by_list(spark, FAST, 1, 2, 8)
    assert (result.report.appeared, result.report.vanished) == (1, 0)


def test_a_new_partition_that_one_reader_of_a_cte_needs_is_read(spark, tmp_path, tables):
    sql = (
        "WITH t AS (SELECT f.id, f.p, k.p AS q FROM fact f JOIN keys k ON f.p = k.p) "
        "SELECT id, p FROM t WHERE q = 1 UNION ALL SELECT id, p FROM t WHERE q = 8"
    )
    result = between(spark, tmp_path, sql, "INSERT INTO fact PARTITION (p = 8) VALUES (80)")
    assert sorted(result.rows) == [(1, 1), (80, 8)]
    assert sorted(map(tuple, spark.sql(sql).collect())) == [(1, 1), (80, 8)]
    assert (result.report.appeared, result.report.vanished) == (1, 0)


@pytest.mark.parametrize("sql", [FAST, SKELETON])
def test_a_dropped_partition_is_not_read(spark, tmp_path, tables, sql):
    result = between(spark, tmp_path, sql, "ALTER TABLE fact DROP PARTITION (p = 1)")
    assert list(result.rows) == [(2, 2)] == by_list(spark, sql, 2)
    assert result.report.vanished == 1


@pytest.mark.parametrize("sql", [FAST, SKELETON])
def test_a_partition_that_is_overwritten_has_its_new_rows(spark, tmp_path, tables, sql):
    rewrite = "INSERT OVERWRITE TABLE fact PARTITION (p = 1) VALUES (100), (101)"
    result = between(spark, tmp_path, sql, rewrite)
    assert sorted(result.rows) == [(2, 2), (100, 1), (101, 1)] == by_list(spark, sql, 1, 2)


def test_a_key_that_is_added_after_the_local_task_is_not_used(spark, tmp_path, tables):
    """The keys are those of the local task."""
    result = between(spark, tmp_path, FAST, "INSERT INTO keys VALUES (3)")
    assert sorted(result.rows) == [(1, 1), (2, 2)]


def test_a_dropped_table_is_sparks_error(spark, tmp_path, tables):
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        between(spark, tmp_path, FAST, "DROP TABLE fact")
