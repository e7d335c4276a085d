"""Statements that are held to the versions from which their keys came."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.binding import OtherSession
from tests.lakes.databases import drop_database
from tests.lakes.runs import rows_of, run, run_apart

JOIN = "SELECT b.id, c.v FROM held.big b JOIN held.changed c ON b.day = c.day"
MERGE = (
    "MERGE INTO held.big t USING held.changed c ON t.id = c.id AND t.day = c.day "
    "WHEN MATCHED THEN UPDATE SET v = c.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (c.id, c.day, c.v)"
)


@pytest.fixture
def tables(lake):
    lake.sql("CREATE DATABASE held")
    lake.sql(
        "CREATE TABLE held.big USING delta PARTITIONED BY (day) AS SELECT id, "
        "date_add(DATE'2024-01-01', cast(id % 20 as int)) AS day, 0L AS v FROM range(0, 100, 1, 1)"
    )
    lake.sql("CREATE TABLE held.changed (id bigint, day date, v bigint) USING delta")
    lake.sql("INSERT INTO held.changed VALUES (2, DATE'2024-01-03', 7)")
    yield lake
    drop_database(lake, "held")


def change(session):
    """A row of a day that the keys don't have, and one more of a day that they have."""
    session.sql(
        "INSERT INTO held.changed VALUES (4, DATE'2024-01-05', 9), (22, DATE'2024-01-03', 8)"
    )


def test_both_stages_name_the_version_and_can_hold_it(tables, tmp_path):
    plain = rows_of(tables, JOIN)
    free = run(tables, JOIN, tmp_path)
    assert (free.rows, free.files("held.big")) == (plain, 1)
    own = tables.sql("DESCRIBE DETAIL held.changed").head()["id"]
    listed = [
        {
            "table": "spark_catalog.held.changed",
            "snapshot": "1",
            "held": False,
            "table_id": "",
        }
    ]
    assert free.report.summary()["snapshots"] == listed
    held = run_apart(tables, JOIN, tmp_path, lambda: change(tables), hold_snapshots=True)
    assert "VERSION AS OF 1" in held.statement
    assert (held.rows, held.files("held.big")) == (plain, 1)
    assert held.report.summary()["snapshots"] == [{**listed[0], "held": True, "table_id": own}]


def test_a_join_that_holds_no_version_reads_the_current_rows(tables, tmp_path, caplog):
    caplog.set_level("INFO")
    found = run_apart(tables, JOIN, tmp_path, lambda: change(tables))
    assert {value for _, value in found.rows} == {7, 8}  # rows with keys that were not read are not
    assert "but its keys came from snapshot 1" in caplog.text


@pytest.mark.parametrize("held", [False, True])
def test_a_merge_reads_the_version_of_its_keys_if_it_is_held(tables, tmp_path, held):
    outcome = run_apart(tables, MERGE, tmp_path, lambda: change(tables), hold_snapshots=held)
    changed = rows_of(tables, "SELECT id, v FROM held.big WHERE v <> 0")
    # without holding the new key fails the guard, so the statement runs again as plain Spark
    assert changed == ([(2, 7)] if held else [(2, 7), (22, 8), (4, 9)])
    assert outcome.report.summary()["reason"] == ("PRUNED" if held else "SOURCE_CHANGED")


def test_a_table_named_by_its_path_is_held_to_its_version(tables, tmp_path):
    path = tables.sql("DESCRIBE DETAIL held.changed").head()["location"].removeprefix("file:")
    sql = JOIN.replace("held.changed c", f"delta.`{path}` c")
    plain = rows_of(tables, sql)
    held = run_apart(tables, sql, tmp_path, lambda: change(tables), hold_snapshots=True)
    assert f"delta.`{path}` VERSION AS OF 1" in held.statement
    assert held.rows == plain


def test_a_table_with_added_columns_is_held_to_its_version(tables, tmp_path):
    """A version whose columns are others than the current ones is not what keys are read from."""
    tables.sql("ALTER TABLE held.changed ADD COLUMNS (more int)")
    plain = rows_of(tables, JOIN)
    held = run(tables, JOIN, tmp_path, hold_snapshots=True)
    assert held.rows == plain
    assert "VERSION AS OF 2" in held.statement


def test_a_version_that_the_statement_names_gives_no_keys(tables, tmp_path):
    change(tables)
    sql = JOIN.replace("held.changed c", "(SELECT * FROM held.changed VERSION AS OF 1) c")
    plain = rows_of(tables, sql)
    found = run(tables, sql, tmp_path, hold_snapshots=True)
    assert found.rows == plain
    assert found.statement.count("VERSION AS OF") == 1


def test_a_table_that_is_made_again_is_not_read_at_the_version_of_the_old_one(tables, tmp_path):
    def again():
        tables.sql("DROP TABLE held.changed")
        tables.sql("CREATE TABLE held.changed (id bigint, day date, v bigint) USING delta")
        tables.sql("INSERT INTO held.changed VALUES (9, DATE'2024-01-10', 7)")

    with pytest.raises(OtherSession, match="made again after the local task, so its version 1"):
        run_apart(tables, JOIN, tmp_path, again, hold_snapshots=True)
