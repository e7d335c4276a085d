"""Key sets of small Delta tables: a task takes the keys of the table's current version only."""

from __future__ import annotations

import pytest

from tests.lakes.databases import drop_database
from tests.spark.shared_keys import codes, counted, run, why

DAYS = "FROM shared.fact f JOIN shared.days d ON f.p = d.day WHERE d.week = 1"


@pytest.fixture(scope="module")
def tables(lake, metastore_service):
    lake.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
    lake.sql(f"CREATE DATABASE shared LOCATION '{metastore_service.warehouse}/shared'")
    lake.sql("CREATE TABLE shared.fact (v INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    lake.sql("INSERT INTO shared.fact SELECT CAST(id AS INT), CAST(id % 20 AS INT) FROM range(60)")
    yield lake
    drop_database(lake, "shared")


def make_days(session):
    session.sql("CREATE TABLE shared.days (day INT, week INT) USING delta")
    session.sql(
        "INSERT INTO shared.days SELECT CAST(id AS INT), CAST(id / 7 AS INT) FROM range(20)"
    )


def test_statements_share_the_keys_of_a_version_of_one_table(tables, tmp_path, monkeypatch):
    asked = counted(monkeypatch)
    make_days(tables)
    found = [run(tables, tmp_path, f"SELECT {columns} {DAYS}") for columns in ("f.v", "f.p")]
    assert [codes(summary) for summary in found] == [["ABSENT"], ["TAKEN"]]
    assert asked == ["days"]
    sql = f"SELECT f.v {DAYS}"
    tables.sql("INSERT INTO shared.days VALUES (19, 1)")
    newer = run(tables, tmp_path, sql)
    assert (codes(newer), "the snapshot of " in why(newer)) == (["TABLES_CHANGED"], True)
    tables.sql("DROP TABLE shared.days")
    make_days(tables)
    tables.sql("INSERT INTO shared.days VALUES (18, 1)")
    again = run(tables, tmp_path, sql)  # of the same version number
    assert (codes(again), "the table ID of " in why(again)) == (["TABLES_CHANGED"], True)
    assert codes(run(tables, tmp_path, sql)) == ["TAKEN"]
    assert len(asked) == 3
