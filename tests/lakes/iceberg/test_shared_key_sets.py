"""Key sets of small Iceberg tables: a task takes the keys of the table's current metadata only."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from tests.lakes.iceberg.test_worker import conf as conf
from tests.lakes.iceberg.test_worker import session as session
from tests.spark.shared_keys import codes, counted, run, why
from tests.worker.tasks import Tasks, in_worker, worker_job

DAYS = "FROM lake.shared.big b JOIN lake.shared.days d ON b.day = d.day WHERE d.week = 1"
MERGE = (
    "MERGE INTO lake.shared.big t USING lake.shared.days d ON t.day = d.day AND d.week = 1 "
    "WHEN MATCHED THEN UPDATE SET id = t.id + 1"
)


@pytest.fixture
def tables(lake):
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.shared")
    lake.sql(
        "CREATE TABLE lake.shared.big USING iceberg PARTITIONED BY (day) AS "
        "SELECT id, CAST(id % 20 AS INT) AS day FROM range(100)"
    )
    lake.sql("CREATE TABLE lake.shared.days (day INT, week INT, other INT) USING iceberg")
    lake.sql(
        "INSERT INTO lake.shared.days SELECT CAST(id AS INT), CAST(id / 7 AS INT), "
        "CAST(19 - id AS INT) FROM range(20)"
    )
    yield lake
    for name in ("big", "days"):
        lake.sql(f"DROP TABLE lake.shared.{name}")


@pytest.fixture
def asked(monkeypatch):
    """The sources whose key query has run."""
    return counted(monkeypatch)


def test_statements_share_the_keys_of_a_snapshot(tables, tmp_path, asked):
    found = [run(tables, tmp_path, f"SELECT {columns} {DAYS}") for columns in ("b.id", "b.day")]
    assert [codes(summary) for summary in found] == [["ABSENT"], ["TAKEN"]]
    reads = [[read for read in each["reads"] if "big" in read["table"]] for each in found]
    assert reads[0] == reads[1]
    assert asked == ["days"]


def test_a_newer_snapshot_is_refused(tables, tmp_path, asked):
    sql = f"SELECT b.id {DAYS}"
    run(tables, tmp_path, sql)
    tables.sql("INSERT INTO lake.shared.days VALUES (19, 1, 0)")
    refused = run(tables, tmp_path, sql)
    assert codes(refused) == ["TABLES_CHANGED"]
    assert "the snapshot of lake.shared.days changed from " in why(refused)
    assert codes(run(tables, tmp_path, sql)) == ["TAKEN"]
    tables.sql("DELETE FROM lake.shared.days WHERE day = 8")
    assert codes(run(tables, tmp_path, sql)) == ["TABLES_CHANGED"]
    assert len(asked) == 3


def test_columns_that_change_their_names_make_no_snapshot_and_are_noticed(tables, tmp_path, asked):
    sql = f"SELECT b.id {DAYS}"
    run(tables, tmp_path, sql)
    for before, after in (("day", "third"), ("other", "day"), ("third", "other")):
        tables.sql(f"ALTER TABLE lake.shared.days RENAME COLUMN {before} TO {after}")
    refused = run(tables, tmp_path, sql)
    assert codes(refused) in (["TABLES_CHANGED"], ["OTHER_COLUMNS"])
    assert "the metadata of lake.shared.days changed" in why(refused)


def test_keys_of_a_branch_are_not_shared(tables, tmp_path, asked):
    session = tables.newSession()
    tables.sql("ALTER TABLE lake.shared.days CREATE BRANCH mine")
    run(tables, tmp_path, f"SELECT b.id {DAYS}")
    session.conf.set("spark.wap.branch", "mine")
    found = run(session, tmp_path, f"SELECT b.id {DAYS}")
    assert (codes(found), "a branch" in why(found)) == (["NOT_SHARED"], True)


def test_a_merge_takes_the_keys_of_a_select(tables, tmp_path, asked):
    sql = (
        "SELECT b.id FROM lake.shared.big b JOIN lake.shared.days d ON b.day = d.day AND d.week = 1"
    )
    run(tables, tmp_path, sql)
    before = tables.sql("SELECT sum(id) FROM lake.shared.big").first()[0]
    first = run(tables, tmp_path, MERGE)
    second = run(tables, tmp_path, MERGE)
    assert codes(second) == ["TAKEN"]
    assert first["reason"] == second["reason"] == "PRUNED"
    tables.sql("REFRESH TABLE lake.shared.big")  # the runs' sessions have changed it
    assert tables.sql("SELECT sum(id) FROM lake.shared.big").first()[0] == before + 2 * 35


def test_the_worker_shares_the_keys_of_a_snapshot(
    session, metastore_service, tmp_path, conf, monkeypatch
):
    monkeypatch.setenv("AIRFLOW_CONN_METASTORE", metastore_service.connection)
    tasks = Tasks(session, tmp_path)
    session.sql(
        "CREATE TABLE lake.small.days USING iceberg AS SELECT CAST(id AS INT) i FROM range(3)"
    )
    sql = "SELECT f.v, f.p FROM small.fact f JOIN lake.small.days k ON f.p = k.i AND k.i > 0"

    def prune():
        job = worker_job(tasks, sql, key_sets=str(tmp_path / "keys"))
        in_worker(job, **conf)
        found = load(UPath(job.path))
        return [use.code for use in found.key_sets], found.snapshots

    try:
        first, second = prune(), prune()
        assert (first[0], second[0]) == (["ABSENT"], ["TAKEN"])
        assert first[1] == second[1]
        session.sql("INSERT INTO lake.small.days VALUES (7)")
        assert prune()[0] == ["TABLES_CHANGED"]
    finally:
        session.sql("DROP TABLE lake.small.days")
