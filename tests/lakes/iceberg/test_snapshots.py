"""Statements that are held to the snapshots from which their keys came."""

from __future__ import annotations

import pytest
from pyspark.errors import IllegalArgumentException

from airflow_hive_opt.documents.gates import GateClosed
from airflow_hive_opt.spark.session.session_conf import conf_set
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import another_session, needs_jvm

JOIN = "SELECT b.id, c.v FROM lake.held.big b JOIN lake.held.changed c ON b.day = c.day"
MERGE = (
    "MERGE INTO lake.held.big t USING lake.held.changed c ON t.id = c.id AND t.day = c.day "
    "WHEN MATCHED THEN UPDATE SET v = c.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (c.id, c.day, c.v)"
)


@pytest.fixture
def tables(lake):
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.held")
    lake.sql(
        "CREATE TABLE lake.held.big USING iceberg PARTITIONED BY (day) AS SELECT id, "
        "date_add(DATE'2024-01-01', cast(id % 20 as int)) AS day, 0L AS v FROM range(100)"
    )
    lake.sql("CREATE TABLE lake.held.changed (id bigint, day date, v bigint) USING iceberg")
    lake.sql("INSERT INTO lake.held.changed VALUES (2, DATE'2024-01-03', 7)")
    yield lake
    for name in ("big", "changed"):
        lake.sql(f"DROP TABLE lake.held.{name}")


def change(session):
    """A row of a day that the keys don't have, and one more of a day that they have."""
    session.sql(
        "INSERT INTO lake.held.changed VALUES (4, DATE'2024-01-05', 9), (22, DATE'2024-01-03', 8)"
    )


def snapshot_of(session, name: str) -> str:
    sql = f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1"
    return str(session.sql(sql).first()[0])


def test_both_stages_name_the_snapshot_and_can_hold_it(tables, tmp_path):
    plain = rows_of(tables, JOIN)
    before = snapshot_of(tables, "lake.held.changed")
    free = run(tables, JOIN, tmp_path)
    assert (free.rows, free.files("lake.held.big")) == (plain, 1)
    listed = [{"table": "lake.held.changed", "snapshot": before, "held": False, "table_id": ""}]
    assert free.report.summary()["snapshots"] == listed
    held = run_apart(tables, JOIN, tmp_path, lambda: change(tables), hold_snapshots=True)
    assert f"VERSION AS OF {before}" in held.statement
    assert (held.rows, held.files("lake.held.big")) == (plain, 1)
    assert held.report.summary()["snapshots"] == [{**listed[0], "held": True}]


def test_a_join_that_holds_no_snapshot_reads_the_current_rows(tables, tmp_path, caplog):
    caplog.set_level("INFO")
    found = run_apart(tables, JOIN, tmp_path, lambda: change(tables))
    assert {value for _, value in found.rows} == {7, 8}  # rows with keys that were not read are not
    assert "but its keys came from snapshot" in caplog.text


@pytest.mark.parametrize("held", [False, True])
def test_a_held_merge_ignores_later_keys_and_another_one_runs_again_plain(tables, tmp_path, held):
    outcome = run_apart(tables, MERGE, tmp_path, lambda: change(tables), hold_snapshots=held)
    changed = rows_of(tables, "SELECT id, v FROM lake.held.big WHERE v <> 0")
    # without holding the new key fails the guard, so the statement runs again as plain Spark
    assert changed == ([(2, 7)] if held else [(2, 7), (22, 8), (4, 9)])
    assert outcome.report.summary()["reason"] == ("PRUNED" if held else "SOURCE_CHANGED")


def test_small_tables_in_subqueries_and_ctes_are_held_to_their_snapshots(tables, tmp_path):
    for sql in (
        "SELECT b.id FROM lake.held.big b WHERE b.day IN (SELECT day FROM lake.held.changed)",
        "WITH c AS (SELECT day FROM lake.held.changed WHERE v > 0) "
        "SELECT b.id FROM lake.held.big b JOIN c ON b.day = c.day",
        "SELECT changed.v FROM lake.held.big b, lake.held.changed WHERE b.day = changed.day",
        "SELECT b.id FROM lake.held.big b JOIN (SELECT day FROM lake.held.changed UNION ALL "
        "SELECT day FROM lake.held.changed) c ON b.day = c.day",
    ):
        plain = rows_of(tables, sql)
        found = run(tables, sql, tmp_path, hold_snapshots=True)
        assert found.rows == plain
        assert found.reasons["b"] == "RESTRICTED"
        assert found.statement.count("VERSION AS OF") == sql.count("held.changed")


FREE = {
    "a view reads it too": (
        "SELECT c.id, d.v FROM lake.held.big b JOIN held_view c ON b.day = c.day "
        "JOIN lake.held.changed d ON d.day = b.day",
        "the statement reads the view held_view",
    ),
    "a temporary view reads it too": (
        "SELECT c.id, d.v FROM lake.held.big b JOIN held_temporary c ON b.day = c.day "
        "JOIN lake.held.changed d ON d.day = b.day",
        "the statement reads the view held_temporary",
    ),
    "LATERAL": (
        "SELECT c.id, l.m FROM lake.held.big b JOIN lake.held.changed c ON b.day = c.day, "
        "LATERAL (SELECT max(v) m FROM lake.held.changed e WHERE e.day = b.day) l",
        "can't name a version",
    ),
    "a column with the database": (
        "SELECT held.changed.v FROM lake.held.big b, lake.held.changed WHERE b.day = changed.day",
        "can't name a version",
    ),
    "column aliases": (
        "SELECT c.w FROM lake.held.big b JOIN lake.held.changed c (i, d, w) ON b.day = c.d",
        "can't name a version",
    ),
}
CHANGES = {
    "SET": (
        "UPDATE lake.held.big SET v = (SELECT max(v) FROM lake.held.changed) "
        "WHERE day IN (SELECT day FROM lake.held.changed)"
    ),
    "a clause of MERGE": (
        "MERGE INTO lake.held.big t USING lake.held.changed c ON t.id = c.id AND t.day = c.day "
        "WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM lake.held.changed)"
    ),
}


@pytest.fixture
def views(tables):
    tables.sql("CREATE VIEW held_view AS SELECT * FROM lake.held.changed")
    tables.sql("CREATE OR REPLACE TEMPORARY VIEW held_temporary AS SELECT * FROM lake.held.changed")
    yield tables
    tables.sql("DROP VIEW held_view")
    tables.sql("DROP VIEW held_temporary")


@pytest.mark.parametrize("name", FREE)
def test_a_table_that_is_read_in_another_way_too_is_not_held(views, tmp_path, caplog, name):
    sql, why = FREE[name]
    plain = rows_of(views, sql)
    found = run_apart(views, sql, tmp_path, hold_snapshots=True)
    assert (found.rows, found.reasons["b"]) == (plain, "RESTRICTED")
    assert "VERSION AS OF" not in found.statement
    assert "lake.held.changed can't be held to its snapshot: " in caplog.text
    assert why in caplog.text


@pytest.mark.parametrize("name", CHANGES)
def test_both_reads_of_a_change_see_the_same_rows(tables, tmp_path, caplog, name):
    changed = "SELECT max(v) FROM lake.held.changed"
    run_apart(tables, CHANGES[name], tmp_path, lambda: change(tables), hold_snapshots=True)
    values = {row[0] for row in rows_of(tables, "SELECT v FROM lake.held.big WHERE v <> 0")}
    assert values == {row[0] for row in rows_of(tables, changed)}
    assert "can't be held" in caplog.text


def test_the_log_says_why_a_table_is_not_held_to_its_snapshot(tables, tmp_path, caplog):
    twice = f"{JOIN} JOIN lake.held.changed d ON d.day = b.day AND d.id IN (SELECT 2)"
    assert run(tables, twice, tmp_path, hold_snapshots=True).rows == rows_of(tables, twice)
    tables.sql("ALTER TABLE lake.held.changed ADD COLUMN later int")
    found = run(tables, JOIN, tmp_path, hold_snapshots=True)
    assert [each.held for each in found.report.descriptor.snapshots] == [False]
    assert "columns have changed since its last snapshot" in caplog.text
    caplog.clear()
    whole = "SELECT b.id FROM lake.held.big b JOIN lake.held.changed c ON b.id = c.id"
    found = run(tables, whole, tmp_path, hold_snapshots=True)
    assert found.reasons == {"b": "NO_CONDITION_ON_PARTITION_COLUMN"}
    assert found.statement == whole
    assert "the keys come from no table with snapshots" in caplog.text


def test_a_table_with_a_version_in_the_statement_is_not_held(tables, tmp_path, caplog):
    first = snapshot_of(tables, "lake.held.changed")
    change(tables)
    at_first = f"(SELECT * FROM lake.held.changed VERSION AS OF {first})"
    sql = JOIN.replace("lake.held.changed", at_first)
    found = run_apart(tables, sql, tmp_path, hold_snapshots=True)
    assert found.rows == rows_of(tables, sql)
    assert found.report.descriptor.snapshots == ()
    assert (found.files("lake.held.big"), "keys came" in caplog.text) == (1, False)


def test_a_session_that_reads_a_branch_holds_no_snapshot(tables, tmp_path):
    for name in ("big", "changed"):
        tables.sql(f"ALTER TABLE lake.held.{name} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    session = another_session(tables)
    with conf_set(session, {"spark.wap.branch": "audit"}):
        _reads_branch(session, tmp_path)


def _reads_branch(session, tmp_path):
    session.sql("INSERT INTO lake.held.big VALUES (900, DATE'2030-01-01', 1)")
    session.sql("INSERT INTO lake.held.changed VALUES (900, DATE'2030-01-01', 1)")
    found = run(session, JOIN, tmp_path, hold_snapshots=True, on_empty="skip")
    assert found.rows == rows_of(session, JOIN)
    assert len(found.rows) == 6
    (files,) = found.report.descriptor.planned_files
    assert (files.files, found.report.descriptor.snapshots) == (None, ())
    with pytest.raises(GateClosed, match="max_partitions can't be checked"):
        run(session, JOIN, tmp_path, max_partitions=0)


@needs_jvm
def test_a_held_snapshot_that_has_expired_is_an_error(tables, tmp_path):
    def expire():
        change(tables)
        loaded = tables._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            tables._jsparkSession, "lake.held.changed"
        )
        now = loaded.currentSnapshot().timestampMillis()
        loaded.expireSnapshots().expireOlderThan(now).commit()

    with pytest.raises(IllegalArgumentException, match="Cannot find snapshot"):
        run_apart(tables, JOIN, tmp_path, expire, hold_snapshots=True)
