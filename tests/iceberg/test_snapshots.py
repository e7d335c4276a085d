"""Statements that are held to the snapshots from which their keys came."""

from __future__ import annotations

import pytest
from pyspark.errors import IllegalArgumentException

from tests.iceberg.runs import rows_of, run, run_apart

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


def test_both_stages_name_the_snapshot_and_hold_it(tables, tmp_path):
    plain = rows_of(tables, JOIN)
    before = snapshot_of(tables, "lake.held.changed")
    free = run(tables, JOIN, tmp_path)
    assert (free.rows, free.files("lake.held.big")) == (plain, 1)
    listed = [{"table": "lake.held.changed", "snapshot": before, "held": False}]
    assert free.report.summary()["snapshots"] == listed
    held = run_apart(tables, JOIN, tmp_path, lambda: change(tables), hold_snapshots=True)
    assert f"VERSION AS OF {before}" in held.statement
    assert (held.rows, held.files("lake.held.big")) == (plain, 1)
    assert held.report.summary()["snapshots"] == [{**listed[0], "held": True}]


def test_without_holding_the_join_reads_what_is_there_now(tables, tmp_path, caplog):
    caplog.set_level("INFO")
    found = run_apart(tables, JOIN, tmp_path, lambda: change(tables))
    assert {value for _, value in found.rows} == {7, 8}  # rows with keys that were not read are not
    assert "but its keys came from snapshot" in caplog.text


@pytest.mark.parametrize("held", [False, True])
def test_merge(tables, tmp_path, held):
    def change_and_merge():
        change(tables)

    outcome = run_apart(tables, MERGE, tmp_path, change_and_merge, hold_snapshots=held)
    changed = rows_of(tables, "SELECT id, v FROM lake.held.big WHERE v <> 0")
    # without holding the new key fails the guard, so the statement runs again as plain Spark
    assert changed == ([(2, 7)] if held else [(2, 7), (22, 8), (4, 9)])
    assert outcome.report.summary()["reason"] == ("PRUNED" if held else "SOURCE_CHANGED")


def test_other_places_of_small_tables(tables, tmp_path):
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
    tables.sql(f"CREATE TABLE lake.held.made USING iceberg AS {JOIN}")
    tables.sql("DROP TABLE lake.held.made")


def test_a_table_that_can_not_be_held(tables, tmp_path, caplog):
    database = (
        "SELECT held.changed.v FROM lake.held.big b, lake.held.changed WHERE b.day = changed.day"
    )
    twice = f"{JOIN} WHERE b.id IN (SELECT id FROM lake.held.big)"
    for sql in (database, twice):
        plain = rows_of(tables, sql)
        found = run(tables, sql, tmp_path, hold_snapshots=True)
        assert found.rows == plain
    assert "can't be held to its snapshot" in caplog.text
    tables.sql("ALTER TABLE lake.held.changed ADD COLUMN later int")
    found = run(tables, JOIN, tmp_path, hold_snapshots=True)
    assert [each.held for each in found.report.descriptor.snapshots] == [False]
    assert "VERSION AS OF" not in found.statement


def test_a_snapshot_that_has_expired(tables, tmp_path):
    def expire():
        change(tables)
        loaded = tables._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
            tables._jsparkSession, "lake.held.changed"
        )
        now = loaded.currentSnapshot().timestampMillis()
        loaded.expireSnapshots().expireOlderThan(now).commit()

    with pytest.raises(IllegalArgumentException, match="Cannot find snapshot"):
        run_apart(tables, JOIN, tmp_path, expire, hold_snapshots=True)
