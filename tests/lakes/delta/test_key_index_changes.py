"""Delta tables that change behind their key index: no row is lost.

What does not depend on the format is tested with Iceberg's tables.
"""

from __future__ import annotations

import logging

import pytest
from upath import UPath

from airflow_hive_opt.spark.catalog.lakes import delta as format_
from airflow_hive_opt.spark.catalog.lakes.delta_files import data_files
from airflow_hive_opt.spark.catalog.lakes.files import counted
from tests.lakes.databases import drop_database
from tests.lakes.delta.indexes import build_index, place_of
from tests.lakes.delta.orders import (
    DAYS,
    JOIN,
    KEYS,
    MAPPED,
    NAME,
    ORDERS,
    add,
    create,
    create_picked,
    literal_rows,
    use_of,
)
from tests.lakes.other_writer import changed_meanwhile
from tests.lakes.runs import rows_of, run, run_apart


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


@pytest.fixture
def database(lake):
    lake.sql("CREATE DATABASE ki")
    create_picked(lake)
    yield lake
    drop_database(lake, "ki")


@pytest.fixture
def tables(database, root):
    create(database)
    build_index(database, root, NAME, "id")
    return database


def test_a_table_is_not_held_if_the_statement_writes_it(tables, tmp_path, root):
    before = rows_of(tables, f"SELECT * FROM {ORDERS}")
    found = run(tables, f"INSERT INTO {ORDERS} (id, v, day) {JOIN}", tmp_path, index_path=str(root))
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert len(rows_of(tables, f"SELECT * FROM {ORDERS}")) == len(before) + 4


def test_a_merge_into_the_table_leaves_its_index_unused(tables, tmp_path, root):
    tables.sql(f"CREATE TABLE ki.plain_orders SHALLOW CLONE {ORDERS}")
    merge = (
        "MERGE INTO {table} t USING ki.picked p ON t.id = p.id WHEN MATCHED THEN UPDATE SET v = -1 "
        "WHEN NOT MATCHED THEN INSERT (id, code, v) VALUES (p.id, p.code, -2)"
    )
    found = run(tables, merge.format(table=ORDERS), tmp_path, index_path=str(root))
    tables.sql(merge.format(table="ki.plain_orders"))
    assert rows_of(tables, f"SELECT * FROM {ORDERS}") == rows_of(
        tables, "SELECT * FROM ki.plain_orders"
    )
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert "no branches" in use_of(found).why


def added(session):
    add(session, "VALUES (3L), (43L), (18L) AS t(id)")
    session.sql(f"INSERT INTO {ORDERS} VALUES (3, 'k3', 5, DATE'2025-05-05'), (3, 'k3', 6, NULL)")


def rewritten(session):
    session.sql(f"UPDATE {ORDERS} SET id = 43 WHERE id = 100")


def with_deletion_vectors(session):
    session.sql(f"ALTER TABLE {ORDERS} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    session.sql(f"DELETE FROM {ORDERS} WHERE id IN (43, 123)")
    session.sql(f"UPDATE {ORDERS} SET id = 7 WHERE id = 200")


def compacted(session):
    added(session)
    session.sql(f"OPTIMIZE {ORDERS}")


def vacuumed(session):
    compacted(session)
    session.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    session.sql(f"VACUUM {ORDERS} RETAIN 0 HOURS")
    session.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")


def deleted(session):
    session.sql(f"DELETE FROM {ORDERS} WHERE day = DATE'2024-01-04'")


def restored(session):
    rewritten(session)
    session.sql(f"RESTORE TABLE {ORDERS} TO VERSION AS OF 1")


def moved_to_another_day(session):
    session.sql(f"UPDATE {ORDERS} SET day = DATE'2024-01-20' WHERE id = 3")


def replaced(session):
    """The table gets another ID, so that it has no index any more."""
    session.sql(
        f"CREATE OR REPLACE TABLE {ORDERS} USING delta PARTITIONED BY (day) AS SELECT "
        "id, concat('k', id) AS code, 8 AS v, date_add(DATE'2024-03-01', cast(id % 40 AS int)) AS "
        "day FROM range(0, 400, 1, 1)"
    )


def overwritten_with_another_key(session):
    """The column of the name has other values in the new files."""
    frame = session.sql(
        "SELECT id + 3 AS id, code, v, day FROM ki.orders WHERE id < 100 AND day IS NOT NULL"
    )
    options = {"overwriteSchema": "true"}
    writer = frame.write.format("delta").mode("overwrite").options(**options)
    writer.partitionBy("day").saveAsTable(ORDERS)


def in_another_layout(session):
    frame = session.sql(f"SELECT id, code, v, day, cast(v % 3 AS int) AS third FROM {ORDERS}")
    options = {"overwriteSchema": "true"}
    writer = frame.write.format("delta").mode("overwrite").options(**options)
    writer.partitionBy("day", "third").saveAsTable(ORDERS)


BEHIND = {
    found.__name__: found
    for found in (
        *(added, rewritten, with_deletion_vectors, compacted, vacuumed, deleted, restored),
        *(moved_to_another_day, replaced, overwritten_with_another_key, in_another_layout),
    )
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_stale_index_loses_no_rows(tables, tmp_path, root, name):
    BEHIND[name](tables)
    expected = rows_of(tables, JOIN)
    stale = run(tables, JOIN, tmp_path, index_path=str(root))
    assert stale.rows == expected == literal_rows(tables)
    assert stale.report.descriptor.index_uses or name == "replaced"
    build_index(tables, root, NAME, "id")
    fresh = run(tables, JOIN, tmp_path, index_path=str(root))
    assert fresh.rows == expected
    assert (use_of(fresh).code, use_of(fresh).unknown) == ("USED", 0)
    assert fresh.files(ORDERS) < DAYS / 2
    for planned in (*stale.report.descriptor.planned_files, *fresh.report.descriptor.planned_files):
        assert planned == counted(tables, planned), "the files are as Delta counts them"


@pytest.mark.parametrize("name", ["added", "compacted", "restored", "replaced"])
def test_a_change_between_the_stages_leaves_the_index_unused(tables, tmp_path, root, name):
    found = run_apart(tables, JOIN, tmp_path, lambda: BEHIND[name](tables), index_path=str(root))
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables)
    assert use_of(found).code == "OTHER_SNAPSHOT"


def test_a_table_that_is_made_again_between_the_stages_is_another_one(tables, tmp_path, root):
    """It has the same version, but its rows are in other days."""

    def again():
        tables.sql(f"DROP TABLE {ORDERS}")
        create(tables)
        tables.sql(f"CREATE TABLE ki.moved USING delta AS SELECT * FROM {ORDERS}")
        tables.sql(f"DROP TABLE {ORDERS}")
        tables.sql(
            f"CREATE TABLE {ORDERS} (id bigint, code string, v int, day date) USING delta "
            "PARTITIONED BY (day)"
        )
        moved = "SELECT id, code, v, date_add(day, 5) FROM ki.moved WHERE "
        tables.sql(f"INSERT INTO {ORDERS} {moved} id < 200")
        tables.sql(f"INSERT INTO {ORDERS} {moved} id >= 200")

    def version() -> int:
        return tables.sql(f"DESCRIBE HISTORY {ORDERS}").head()["version"]

    before = version()
    found = run_apart(tables, JOIN, tmp_path, again, index_path=str(root))
    assert version() == before
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables) != []
    assert use_of(found).code == "OTHER_SNAPSHOT"


def test_columns_with_other_names_in_the_files_have_an_index(database, tmp_path, root):
    create(database, MAPPED)
    database.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN id TO number")
    database.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN code TO id")
    database.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN day TO `a day's`")
    build_index(database, root, NAME, "number")
    sql = f"SELECT o.number, o.id FROM {ORDERS} o JOIN ki.picked p ON o.number = p.id"
    found = run(database, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, sql)
    assert found.rows == rows_of(database, f"{sql} AND o.number IN ({KEYS})") != []
    assert (use_of(found).column, use_of(found).code, found.files(ORDERS)) == ("number", "USED", 3)
    sql = f"SELECT o.number FROM {ORDERS} o JOIN ki.picked p ON o.id = p.code"
    found = run(database, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, sql) != []
    assert found.report.descriptor.index_uses == ()  # the index is not that of the new name


def test_a_column_that_is_dropped_and_added_again_is_another_one(database, tmp_path, root):
    create(database, MAPPED)
    build_index(database, root, NAME, "id")
    database.sql(f"ALTER TABLE {ORDERS} DROP COLUMN id")
    database.sql(f"ALTER TABLE {ORDERS} ADD COLUMN id bigint")
    database.sql(f"INSERT INTO {ORDERS} (id, day) VALUES (3, DATE'2024-01-09'), (9, NULL)")
    found = run(database, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, JOIN) != []
    assert found.report.descriptor.index_uses == ()
    build_index(database, root, NAME, "id")
    found = run(database, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, JOIN) != []
    assert (use_of(found).code, use_of(found).files, found.files(ORDERS)) == ("USED", 1, 2)


def test_a_table_with_mapping_switched_on_later_keeps_its_index(tables, tmp_path, root):
    properties = MAPPED.removeprefix("TBLPROPERTIES ")
    tables.sql(f"ALTER TABLE {ORDERS} SET TBLPROPERTIES {properties}")
    tables.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN id TO number")
    sql = JOIN.replace("o.id", "o.number")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql) != []
    assert (use_of(found).code, use_of(found).unknown, found.files(ORDERS)) == ("USED", 0, 3)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("string", ["a b", "c%20d", "x=y/z", "ü'\\\"", "A", "a", " ", "", None]),
        ("int", [-1, 0, 5, None]),
        ("bigint", [-(2**63), 2**63 - 1, None]),
    ],
)
def test_any_values_of_partitions_become_conditions(database, tmp_path, root, type_, values):
    database.sql(
        f"CREATE TABLE {ORDERS} (id bigint, v int, day {type_}) USING delta PARTITIONED BY (day)"
    )
    rows = [(key, key % 3, values[key % len(values)]) for key in range(90)]
    frame = database.createDataFrame(rows, f"id bigint, v int, day {type_}").coalesce(1)
    frame.write.format("delta").mode("append").saveAsTable(ORDERS)
    build_index(database, root, NAME, "id")
    for key in range(len(values)):
        picked = f"SELECT o.id, o.day FROM {ORDERS} o JOIN ki.one p ON o.id = p.id"
        database.sql(f"CREATE OR REPLACE TABLE ki.one USING delta AS SELECT {key}L AS id")
        found = run(database, picked, tmp_path, index_path=str(root))
        assert found.rows == rows_of(database, picked)
        assert len(found.rows) == 1
        assert (use_of(found).code, use_of(found).unknown) == ("USED", 0)
        assert found.files(ORDERS) == 1


def test_days_of_timestamps_are_no_conditions(database, tmp_path, root):
    database.sql(
        f"CREATE TABLE {ORDERS} USING delta PARTITIONED BY (day) AS SELECT id, "
        "timestamp_seconds(id % 9 * 86400) AS day, 1 AS v FROM range(0, 90, 1, 1)"
    )
    build_index(database, root, NAME, "id")
    found = run(database, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, JOIN)
    assert use_of(found).code == "NO_PARTITION_VALUES"


def test_a_version_that_the_statement_names_is_read(tables, tmp_path, root):
    added(tables)
    sql = JOIN.replace(f"{ORDERS} o", f"(SELECT * FROM {ORDERS} VERSION AS OF 1) o")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql) != rows_of(tables, JOIN)
    path = tables.sql(f"DESCRIBE DETAIL {ORDERS}").head()["location"].removeprefix("file:")
    sql = JOIN.replace(f"{ORDERS} o", f"delta.`{path}@v1` o")
    again = run(tables, sql, tmp_path, index_path=str(root))
    assert again.rows == found.rows


def test_an_index_of_a_table_that_is_made_again_is_not_used(tables, tmp_path, root):
    tables.sql(f"DROP TABLE {ORDERS}")
    create(tables)
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN) != []
    assert found.report.descriptor.index_uses == ()


def test_a_damaged_index_costs_no_rows(tables, tmp_path, root, caplog):
    (manifest,) = root.glob("*/*/manifest.json")
    manifest.write_text(manifest.read_text().replace("orders", "others"))
    with caplog.at_level(logging.WARNING):
        found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, JOIN), "NOT_READABLE")


def test_the_files_of_the_version_are_listed_whatever_has_been_committed_since(tables):
    """Another writer may commit between two questions of a local task."""
    own = tables.sql(f"DESCRIBE DETAIL {ORDERS}").head()["id"]
    before = data_files(tables, NAME, "2", own, ["day"])
    compacted(tables)
    assert data_files(tables, NAME, "2", own, ["day"]) == before
    assert len(before) == DAYS + 1
    assert before != data_files(tables, NAME, "4", own, ["day"])
    with pytest.raises(ValueError, match="not partitioned by code in version 2"):
        data_files(tables, NAME, "2", own, ["code"])
    with pytest.raises(ValueError, match="made again"):
        data_files(tables, NAME, "2", "another", ["day"])


def overwrite(session, sql: str, day: str) -> None:
    writer = session.sql(sql).write.format("delta").mode("overwrite")
    writer.option("overwriteSchema", "true").partitionBy(day).saveAsTable(ORDERS)


@pytest.mark.parametrize("left", ["third", "third AS other"])
def test_partitions_that_change_after_the_plan_give_no_conditions(
    database, tmp_path, root, monkeypatch, left
):
    database.sql(
        f"CREATE TABLE {ORDERS} USING delta PARTITIONED BY (day, third) AS SELECT id, 1 AS v, "
        "cast(id % 40 AS int) AS day, cast(id % 3 AS int) AS third FROM range(0, 400, 1, 1)"
    )
    build_index(database, root, NAME, "id")

    def change():
        overwrite(database, f"SELECT id, v, day, {left} FROM {ORDERS}", "day")
        build_index(database, root, NAME, "id")

    changed_meanwhile(monkeypatch, change)
    found = run(database, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(database, JOIN) == literal_rows(database) != []
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert "since the statement was planned" in use_of(found).why


def test_columns_that_swap_names_after_the_version_is_fixed_keep_their_indexes(
    database, tmp_path, root, monkeypatch
):
    """The statement reads the version with its names."""
    database.sql(
        f"CREATE TABLE {ORDERS} (id bigint, other bigint, v int, day int) USING delta "
        f"PARTITIONED BY (day) {MAPPED}"
    )
    rows = "SELECT id, 400 - id, 1, cast(id % 40 AS int) FROM range(0, 400, 1, 1)"
    database.sql(f"INSERT INTO {ORDERS} {rows}")
    build_index(database, root, NAME, "id")
    build_index(database, root, NAME, "other")
    before = rows_of(database, JOIN)

    def swap():
        for old, new in (("id", "more"), ("other", "id"), ("more", "other")):
            database.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN {old} TO {new}")

    changed_meanwhile(monkeypatch, swap, after=True)
    found = run(database, JOIN, tmp_path, index_path=str(root))
    assert found.rows == before != rows_of(database, JOIN)
    assert (use_of(found).code, use_of(found).unknown) == ("USED", 0)


@pytest.mark.parametrize("escaped", ["true", "false"])
@pytest.mark.parametrize("column", ["a'b", "a\\b"])
def test_odd_names_of_partition_columns_become_conditions(
    database, tmp_path, root, column, escaped
):
    database.sql(
        f"CREATE TABLE {ORDERS} USING delta PARTITIONED BY (day, `{column}`) AS SELECT id, 1 AS v, "
        f"cast(id % 40 AS int) AS day, concat('p', id % 3) AS `{column}` FROM range(0, 400, 1, 1)"
    )
    build_index(database, root, NAME, "id")
    database.conf.set("spark.sql.parser.escapedStringLiterals", escaped)
    try:
        found = run(database, JOIN, tmp_path, index_path=str(root))
        assert found.rows == rows_of(database, JOIN) == literal_rows(database) != []
    finally:
        database.conf.unset("spark.sql.parser.escapedStringLiterals")
    assert (use_of(found).code, use_of(found).files) == ("USED", 3)
    assert "IS NULL" not in found.statement


def test_an_insert_into_the_table_by_its_path_is_not_held(tables, tmp_path, root):
    path = place_of(tables, NAME)
    before = rows_of(tables, f"SELECT * FROM {ORDERS}")
    insert = f"INSERT INTO delta.`{path}` (id, v, day) {JOIN}"
    found = run(tables, insert, tmp_path, index_path=str(root))
    assert use_of(found).why == "the statement also writes the table"
    assert len(rows_of(tables, f"SELECT * FROM {ORDERS}")) == len(before) + 4


def test_an_error_of_any_class_costs_no_run(tables, tmp_path, root, monkeypatch, caplog):
    def failing(*_):
        raise KeyError("day")

    monkeypatch.setattr(format_, "data_files", failing)
    with caplog.at_level(logging.WARNING):
        found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables)
    assert "the key indexes of" in caplog.text
