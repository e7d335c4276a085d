"""Partitions that are added between the two tasks are read, however the list was found.

Partition 8 is one that the keys require, partition 9 is not. Both land in between.
"""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.local_task import selection
from airflow_hive_opt.metastores.thrift.partition_filter import VALUES_A_FILTER
from tests.cases import slow_but
from tests.spark.stages import job_of, join, map_join, prune

SELECT = "SELECT f.id, f.p, f.r FROM arriving.fact f "
MANY = f"{SELECT} JOIN arriving.many k ON f.p = k.p"
EMPTY = f"{SELECT} JOIN arriving.many k ON f.p = k.p AND k.p > 5 AND k.p <> 9"
# Each with the partitions of p that the map join reads.
STATEMENTS = {
    "filter": (f"{SELECT} JOIN arriving.keys k ON f.p = k.p", {1, 2, 8}),
    "names": (MANY, {1, 2, 8}),
    "names, none at first": (EMPTY, {8}),
    "names and a condition": (f"{MANY} WHERE f.p % 2 = 0", {2, 8}),
    "skeleton": (f"{SELECT} JOIN arriving.keys k ON f.p + 0 = k.p", {1, 2, 8, 9}),
    "keys and a skeleton": (
        f"{SELECT} JOIN arriving.keys k ON f.p = k.p JOIN arriving.sides s ON lower(f.r) = s.r",
        {1, 8},
    ),
    "names of another table": (
        "SELECT f.id, f.p, o.p AS q FROM arriving.fact f JOIN arriving.other o ON f.p = o.p",
        {1, 2, 8},
    ),
    "two readers of a CTE": (
        "WITH t AS (SELECT f.id, f.p, f.r, k.p AS q FROM arriving.fact f "
        "JOIN arriving.many k ON f.p = k.p) SELECT id FROM t WHERE q = 1 "
        "UNION ALL SELECT id FROM t WHERE q > 7",
        {1, 8},
    ),
    "a table of a serde": (MANY.replace("arriving.fact", "arriving.texts"), {1, 2, 8}),
}


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE arriving")
    columns = "(id INT) PARTITIONED BY (p INT, r STRING)"
    spark.sql(f"CREATE TABLE arriving.fact {columns} STORED AS PARQUET")
    spark.sql(f"CREATE TABLE arriving.texts {columns} STORED AS TEXTFILE")
    spark.sql("CREATE TABLE arriving.other (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    sides = "CASE WHEN id % 2 = 0 THEN 'S' ELSE 'N' END"
    for table in ("fact", "texts"):
        spark.sql(
            f"INSERT INTO arriving.{table} "
            f"SELECT CAST(id AS INT), CAST(id AS INT), {sides} FROM range(6)"
        )
    spark.sql("INSERT INTO arriving.other SELECT 0, p FROM VALUES (1), (2), (8) AS t(p)")
    for name, rows in {
        "keys": "SELECT p FROM VALUES (1), (2), (8) AS t(p)",
        "sides": "SELECT r FROM VALUES ('n') AS t(r)",
        "many": "SELECT CAST(p AS INT) p FROM VALUES (1), (2), (8) AS t(p) "
        f"UNION ALL SELECT CAST(id + 100 AS INT) FROM range({VALUES_A_FILTER})",
    }.items():
        spark.sql(f"CREATE TABLE arriving.{name} STORED AS PARQUET AS {rows}")
    yield
    spark.sql("DROP DATABASE arriving CASCADE")


@pytest.fixture
def land(spark):
    """Adds the partitions; they are dropped again at the end."""

    def add():
        for table in ("fact", "texts"):
            for p in (8, 9):
                into = f"arriving.{table} PARTITION (p = {p}, r = 'N')"
                spark.sql(f"INSERT INTO {into} VALUES ({p}0)")

    yield add
    for table in ("fact", "texts"):
        spark.sql(
            f"ALTER TABLE arriving.{table} DROP IF EXISTS PARTITION (p = 8), PARTITION (p = 9)"
        )


def rows_of(spark, sql):
    return sorted(map(tuple, spark.sql(sql).collect()))


def read_by(spark, sql):
    """The values of p of the big table's files that a statement reads."""
    files = [name for name in spark.sql(sql).inputFiles() if "/fact/" in name or "/texts/" in name]
    return {int(name.split("/p=")[1].split("/")[0]) for name in files}


@pytest.mark.parametrize(
    "name",
    slow_but(STATEMENTS, "filter", "names and a condition", "skeleton", "two readers of a CTE"),
)
def test_partitions_added_between_the_tasks_are_read(spark, tmp_path, land, name):
    sql, read = STATEMENTS[name]
    job, path = job_of(sql), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path)
    (target,) = (each for each in pruned.descriptor.targets if each.scan.alias == "f")
    assert bool(target.filter) == (name == "filter")
    before = rows_of(spark, sql)
    land()
    plain = rows_of(spark, sql)
    assert len(plain) > len(before)

    result = map_join(spark, job, path, pruned.descriptor.digest)
    assert sorted(result.rows) == plain
    if "UNION" not in sql:
        listed = f"f.p IN ({', '.join(map(str, read))})"
        literal = f"{sql} {'AND' if 'WHERE' in sql else 'WHERE'} {listed}"
        assert rows_of(spark, literal) == plain
    if "texts" not in sql:  # Spark does not say which files a serde reads
        assert read_by(spark, result.statement) == read
    # the other table's partition 8 was there, but nothing matched it
    listed = 3 if name == "names of another table" else len(read - {1, 2})
    assert result.report.appeared == listed


def test_one_application_stores_nothing_about_new_partitions(spark, tmp_path, land):
    job, path = job_of(MANY), UPath(tmp_path) / "1.json"
    pruned = prune(spark, job, path, hand_over=False)
    assert [each.new_partitions for each in load(path).targets] == [()]
    land()
    assert sorted(join(spark, job, pruned, path).rows) == [(1, 1, "N"), (2, 2, "S")]


def test_partitions_that_a_condition_left_out_are_not_new(spark, tmp_path, land):
    """Partitions that were there and did not fulfil it stay out, also if they are many."""
    sql = STATEMENTS["names and a condition"][0]
    path = UPath(tmp_path) / "1.json"
    prune(spark, job_of(sql), path)
    (target,) = load(path).targets
    (new,) = target.new_partitions
    assert [keys.columns for keys in new.keys] == [("p",)]
    assert new.left_out == (("1", "N"),)


def test_a_list_that_left_out_partitions_make_too_long_is_not_handed_over(
    spark, tmp_path, monkeypatch
):
    sql = STATEMENTS["skeleton"][0]
    monkeypatch.setattr(selection, "_LONGEST_LIST", 300)  # of six partitions, four are left out
    for hand_over, reason in ((False, "PRUNED"), (True, "LIST_TOO_LARGE")):
        pruned = prune(spark, job_of(sql), UPath(tmp_path) / "1.json", hand_over=hand_over)
        assert [each.reason for each in pruned.descriptor.decisions] == [reason]
