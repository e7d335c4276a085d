"""Joins by a column with a key index: the rows are Spark's own, from the files of the keys."""

from __future__ import annotations

import json
import logging

import pytest
from upath import UPath

from airflow_hive_opt.key_index.manifest import folder_of
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.keys.key_query import KeyQuery
from airflow_hive_opt.spark.local_task import lake_scans
from tests.lakes.iceberg.indexes import build_index
from tests.lakes.other_writer import changed_meanwhile
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import needs_jvm

pytestmark = needs_jvm
ORDERS, DAYS = "lake.ki.orders", 40
JOIN = f"SELECT o.id, o.v, o.day FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id"
ONE_KEY = f"{JOIN} AND p.id > 4000"


@pytest.fixture(scope="module")
def session(lake):
    lake.sql("CREATE NAMESPACE lake.ki")
    yield lake
    lake.sql("USE spark_catalog.default")


@pytest.fixture
def root(tmp_path):
    return UPath(tmp_path / "indexes")


@pytest.fixture
def tables(session, root):
    """Orders by day: an order's number says nothing of its day. Some days are NULL."""
    session.sql(
        f"CREATE TABLE {ORDERS} (id bigint, code string, v int, day date) USING iceberg "
        "PARTITIONED BY (day) TBLPROPERTIES ('format-version' = '2')"
    )
    add(session, "range(400)")
    session.sql(f"INSERT INTO {ORDERS} VALUES (7, 'k7', 1, NULL), (999, 'k999', 1, NULL)")
    session.sql(
        "CREATE TABLE lake.ki.picked USING iceberg AS SELECT * FROM VALUES "
        "(3L, 3, 'k3', 1), (43L, 43, 'k43', 1), (7L, 7, 'k7', 2), (5000L, 5000, 'none', 2), "
        "(NULL, NULL, NULL, 3) AS t(id, small, code, kind)"
    )
    build_index(session, root, ORDERS, "id")
    yield session
    for name in ("orders", "picked"):
        session.sql(f"DROP TABLE lake.ki.{name} PURGE")


def add(session, rows: str) -> None:
    session.sql(
        f"INSERT INTO {ORDERS} SELECT id, concat('k', id), cast(id % 9 AS int), "
        f"date_add(DATE'2024-01-01', cast(id % {DAYS} AS int)) FROM {rows}"
    )


def literal_rows(session, sql: str, keys: str) -> list[tuple]:
    return rows_of(session, f"{sql} AND o.id IN ({keys})")


def use_of(found):
    (use,) = found.report.descriptor.index_uses
    return use


def test_a_join_reads_the_partitions_of_the_files_that_hold_the_keys(tables, tmp_path, root):
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN)
    assert found.rows == literal_rows(tables, JOIN, "3, 43, 7, 5000")
    assert {row[0] for row in found.rows} == {3, 7, 43}
    use = use_of(found)
    # 3 and 43 have the same day; 7 has a day and NULL
    assert (use.code, use.files, use.unknown, use.total_files) == ("USED", 3, 0, DAYS + 1)
    assert found.files(ORDERS) == 3
    assert "VERSION AS OF" in found.statement
    (planned,) = found.report.descriptor.planned_files
    assert (planned.partitions, planned.files, planned.total_files) == (3, 3, DAYS + 1)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT o.id FROM {ORDERS} o WHERE o.id IN (SELECT id FROM lake.ki.picked)",
        f"SELECT o.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.small AND p.kind = 1",
        f"SELECT o.id FROM lake.ki.picked p LEFT JOIN {ORDERS} o ON o.id = p.id AND o.v > 0",
        f"SELECT o.id, q.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id "
        f"JOIN {ORDERS} q ON q.id = p.id AND q.day = o.day",
        f"SELECT o.id, q.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id "
        f"JOIN (SELECT * FROM {ORDERS} WHERE v = 1) q ON q.day = o.day",
        f"WITH x AS (SELECT * FROM {ORDERS}) SELECT a.id, b.v FROM x a, x b, lake.ki.picked p "
        "WHERE a.id = p.id AND b.id = p.id AND p.kind = 1",
        f"SELECT o.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id AND p.id > 4000",
        f"SELECT {ORDERS.split('.')[-1]}.id FROM {ORDERS} JOIN lake.ki.picked p USING (id)",
        f"SELECT count(*) FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id "
        f"UNION ALL SELECT count(*) FROM {ORDERS}",
    ],
)
def test_statements_have_plain_sparks_rows(tables, tmp_path, root, sql):
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert "USED" in {use.code for use in found.report.descriptor.index_uses}
    assert found.statement.count("VERSION AS OF") == sql.count(ORDERS)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT o.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = CAST(p.small AS double)",
        f"SELECT o.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id = p.id + 0.0",
        f"SELECT o.id FROM {ORDERS} o LEFT JOIN lake.ki.picked p ON o.id = p.id",
        f"SELECT o.id FROM {ORDERS} o JOIN lake.ki.picked p ON o.id >= p.id",
    ],
)
def test_other_comparisons_do_not_ask_the_index(tables, tmp_path, root, sql):
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert found.report.descriptor.index_uses == ()
    assert "VERSION AS OF" not in found.statement


def test_a_version_elsewhere_in_the_statement_stays_as_it_is(tables, tmp_path, root):
    first = tables.sql(f"SELECT snapshot_id FROM {ORDERS}.snapshots").head()[0]
    old = f"SELECT * FROM {ORDERS} VERSION AS OF {first}"
    sql = f"{JOIN} JOIN ({old}) x ON x.id = p.id"
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "USED")
    sql = f"{JOIN} JOIN {ORDERS} VERSION AS OF {first} x ON x.id = p.id"
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "USED")
    assert found.statement.count(f"VERSION AS OF {first}") == 1


def test_a_view_leaves_the_index_unused(tables, tmp_path, root):
    tables.sql(f"CREATE TEMPORARY VIEW seen AS SELECT * FROM {ORDERS}")
    sql = f"{JOIN} JOIN seen s ON s.id = p.id"
    found = run(tables, sql, tmp_path, index_path=str(root))
    tables.sql("DROP VIEW seen")
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"


def test_a_table_of_the_same_name_elsewhere_can_be_written(tables, tmp_path, root):
    tables.sql("CREATE NAMESPACE IF NOT EXISTS lake.other")
    columns = "(id bigint, v int, day date) USING iceberg"
    for name in ("orders", "plain_orders"):
        tables.sql(f"CREATE TABLE lake.other.{name} {columns}")
    found = run(tables, f"INSERT INTO lake.other.orders {JOIN}", tmp_path, index_path=str(root))
    tables.sql(f"INSERT INTO lake.other.plain_orders {JOIN}")
    contents = [
        rows_of(tables, f"SELECT * FROM lake.other.{name}") for name in ("orders", "plain_orders")
    ]
    for name in ("orders", "plain_orders"):
        tables.sql(f"DROP TABLE lake.other.{name} PURGE")
    assert contents[0] == contents[1] == literal_rows(tables, JOIN, "3, 43, 7, 5000") != []
    assert (use_of(found).code, use_of(found).files, found.files(ORDERS)) == ("USED", 3, 3)


@pytest.mark.parametrize("name", [ORDERS, "orders", "`lake`.ki.`orders`"])
def test_a_table_is_not_held_if_the_statement_writes_it(tables, tmp_path, root, name):
    tables.sql("USE lake.ki")
    before = rows_of(tables, f"SELECT * FROM {ORDERS}")
    insert = f"INSERT INTO {name} (id, v, day) {JOIN}"
    found = run(tables, insert, tmp_path, index_path=str(root))
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert len(rows_of(tables, f"SELECT * FROM {ORDERS}")) == len(before) + 4


def test_a_delete_that_reads_the_tables_metadata_does_not_use_the_index(tables, tmp_path, root):
    condition = "id IN (SELECT id FROM lake.ki.picked WHERE kind = 1)"
    branches = f"(SELECT max(name) FROM {ORDERS}.refs)"
    sql = f"DELETE FROM {ORDERS} WHERE {condition} AND code <> {branches}"
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert rows_of(tables, f"SELECT id FROM {ORDERS} WHERE id IN (3, 43)") == []


def added(session):
    add(session, "VALUES (3L), (43L), (18L) AS t(id)")
    session.sql(f"INSERT INTO {ORDERS} VALUES (3, 'k3', 5, DATE'2025-05-05'), (3, 'k3', 6, NULL)")


def rewritten(session):
    session.sql(f"UPDATE {ORDERS} SET id = 43 WHERE id = 100")


def merged_on_read(session):
    session.sql(f"ALTER TABLE {ORDERS} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    session.sql(f"DELETE FROM {ORDERS} WHERE id = 43")


def compacted(session):
    added(session)
    session.sql(
        "CALL lake.system.rewrite_data_files(table => 'ki.orders', options => "
        "map('min-input-files', '1', 'rewrite-all', 'true'))"
    )


def deleted(session):
    session.sql(f"DELETE FROM {ORDERS} WHERE day = DATE'2024-01-04'")


def rolled_back(session):
    first = session.sql(f"SELECT snapshot_id FROM {ORDERS}.snapshots").head()[0]
    session.sql(f"CALL lake.system.rollback_to_snapshot('ki.orders', {first})")


def moved_to_another_day(session):
    session.sql(f"UPDATE {ORDERS} SET day = DATE'2024-01-20' WHERE id = 3")


def other_layout(session):
    session.sql(f"ALTER TABLE {ORDERS} ADD PARTITION FIELD v")
    add(session, "VALUES (3L), (43L) AS t(id)")


def by_another_field_for_a_while(session):
    session.sql(f"ALTER TABLE {ORDERS} ADD PARTITION FIELD v")
    add(session, "VALUES (3L), (43L) AS t(id)")
    session.sql(f"ALTER TABLE {ORDERS} DROP PARTITION FIELD v")


def no_longer_by_day(session):
    session.sql(f"ALTER TABLE {ORDERS} DROP PARTITION FIELD day")
    add(session, "VALUES (3L), (43L), (11L) AS t(id)")


def renamed(session):
    session.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN v TO w")
    session.sql(f"ALTER TABLE {ORDERS} ADD COLUMN v int")
    added_again = "SELECT id, code, w, day, 1 FROM lake.ki.orders WHERE id = 43"
    session.sql(f"INSERT INTO {ORDERS} {added_again}")


BEHIND = {
    found.__name__: found
    for found in (
        *(added, rewritten, merged_on_read, compacted, deleted, rolled_back),
        *(moved_to_another_day, other_layout, by_another_field_for_a_while),
        *(no_longer_by_day, renamed),
    )
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_stale_index_loses_no_rows(tables, tmp_path, root, name):
    BEHIND[name](tables)
    expected = rows_of(tables, JOIN)
    stale = run(tables, JOIN, tmp_path, index_path=str(root))
    assert stale.rows == expected
    assert stale.rows == literal_rows(tables, JOIN, "3, 43, 7, 5000")
    build_index(tables, root, ORDERS, "id")
    fresh = run(tables, JOIN, tmp_path, index_path=str(root))
    assert fresh.rows == expected
    if name == "no_longer_by_day":
        assert use_of(fresh).code == "NO_PARTITION_VALUES"
    else:
        assert (use_of(fresh).code, use_of(fresh).unknown) == ("USED", 0)
        assert fresh.files(ORDERS) < DAYS / 2
    for found in (stale, fresh):
        (planned,) = found.report.descriptor.planned_files
        assert planned == counted(tables, planned), "the files are as Iceberg counts them"


@pytest.mark.parametrize(
    ("change", "sql", "counts"),
    [
        ("nothing", JOIN, 0),
        ("added", JOIN, 1),  # files that the index does not cover
        ("merged_on_read", JOIN, 1),  # Iceberg's sizes include delete files
        ("by_another_field_for_a_while", JOIN, 1),
        ("another file of a day", JOIN, 1),  # it holds no key: its lowest and highest may tell
        ("nothing", f"{JOIN} AND o.code = p.code", 1),  # a column without an index
    ],
)
def test_files_are_counted_only_if_the_index_does_not_tell(
    tables, tmp_path, root, monkeypatch, change, sql, counts
):
    calls = []
    monkeypatch.setattr(
        lake_scans, "counted", lambda *found: calls.append(found) or counted(*found)
    )
    if change in BEHIND:
        BEHIND[change](tables)
    elif change != "nothing":
        tables.sql(f"INSERT INTO {ORDERS} VALUES (5, 'k5', 5, DATE'2024-01-04')")
    if change in ("by_another_field_for_a_while", "another file of a day"):
        build_index(tables, root, ORDERS, "id")
    tables.sql(f"ALTER TABLE {ORDERS} WRITE ORDERED BY day, code")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "USED")
    assert len(calls) == counts
    (planned,) = found.report.descriptor.planned_files
    assert planned == counted(tables, planned)


@pytest.mark.parametrize(
    ("partitioned", "sql", "counts"),
    [
        ("day, bucket(4, v)", ONE_KEY, 1),
        ("day, s.x", ONE_KEY, 1),
        ("days(at)", ONE_KEY, 0),
        ("v, months(at)", ONE_KEY, 0),
        ("day", f"{ONE_KEY} AND o.code = p.code", 0),
    ],
)
def test_files_are_counted_if_partitions_have_fields_that_give_no_conditions(
    tables, tmp_path, root, monkeypatch, partitioned, sql, counts
):
    calls = []
    monkeypatch.setattr(
        lake_scans, "counted", lambda *found: calls.append(found) or counted(*found)
    )
    tables.sql(f"CREATE TABLE lake.ki.copied USING iceberg AS SELECT * FROM {ORDERS}")
    tables.sql(f"DROP TABLE {ORDERS} PURGE")
    tables.sql(
        f"CREATE TABLE {ORDERS} USING iceberg PARTITIONED BY ({partitioned}) AS SELECT *, "
        "CAST(day AS timestamp) AS at, named_struct('x', v) AS s FROM lake.ki.copied"
    )
    tables.sql("DROP TABLE lake.ki.copied PURGE")
    day = "DATE'2030-01-01'"  # all its files hold the key
    tables.sql(
        f"INSERT INTO {ORDERS} SELECT 5000, 'none', CAST(id AS int), {day}, "
        f"CAST({day} AS timestamp), named_struct('x', CAST(id AS int)) FROM range(1, 9)"
    )
    for column in ("id", "code"):
        build_index(tables, root, ORDERS, column)
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert {use.code for use in found.report.descriptor.index_uses} == {"USED"}
    (planned,) = found.report.descriptor.planned_files
    assert planned == counted(tables, planned)
    assert (len(calls), planned.files > 0) == (counts, True)


def test_a_key_query_of_one_table_is_not_adaptive(tables, tmp_path, root, monkeypatch):
    settings = []
    read = KeyQuery.run
    monkeypatch.setattr(
        KeyQuery, "run", lambda query: settings.append(dict(query.settings)) or read(query)
    )
    run(tables, JOIN, tmp_path, index_path=str(root))
    assert [each.get("spark.sql.adaptive.enabled") for each in settings] == ["false"]


def test_a_renamed_key_column_keeps_its_index(tables, tmp_path, root):
    tables.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN id TO number")
    sql = JOIN.replace("o.id", "o.number")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "NO_FIXED_SNAPSHOT")
    tables.sql(f"INSERT INTO {ORDERS} VALUES (1, 'k1', 1, NULL)")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "USED")
    assert (use_of(found).files, use_of(found).unknown) == (4, 1)
    tables.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN code TO id")  # another column of the old name
    tables.sql(f"INSERT INTO {ORDERS} VALUES (1, 'k1', 1, NULL)")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, sql), "USED")


def test_a_layout_that_changes_after_the_plan_gives_no_conditions(
    tables, tmp_path, root, monkeypatch
):
    """A new file has no value of the field that was dropped, but its rows have one."""
    changed_meanwhile(monkeypatch, lambda: no_longer_by_day(tables))
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables, JOIN, "3, 43, 7, 5000")
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"
    assert "since the statement was planned" in use_of(found).why


def test_columns_that_swap_names_after_the_snapshot_is_fixed_keep_their_indexes(
    tables, tmp_path, root, monkeypatch
):
    """The statement reads the snapshot with its names."""
    tables.sql(f"ALTER TABLE {ORDERS} ADD COLUMN other bigint")
    tables.sql(f"UPDATE {ORDERS} SET other = 400 - id")
    for column in ("id", "other"):
        build_index(tables, root, ORDERS, column)
    before = rows_of(tables, JOIN)

    def swap():
        for old, new in (("id", "more"), ("other", "id"), ("more", "other")):
            tables.sql(f"ALTER TABLE {ORDERS} RENAME COLUMN {old} TO {new}")

    changed_meanwhile(monkeypatch, swap, after=True)
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert found.rows == before != rows_of(tables, JOIN)
    assert (use_of(found).code, use_of(found).unknown) == ("USED", 0)


def test_keys_may_be_texts(tables, tmp_path, root):
    build_index(tables, root, ORDERS, "code")
    sql = JOIN.replace("o.id = p.id", "o.code = p.code")
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql)
    assert (use_of(found).column, use_of(found).code, found.files(ORDERS)) == ("code", "USED", 3)


def test_keys_of_two_columns_leave_the_files_that_both_indexes_leave(tables, tmp_path, root):
    build_index(tables, root, ORDERS, "code")
    sql = f"{JOIN} AND p.kind = 1 JOIN lake.ki.picked q ON o.code = q.code AND q.id IN (3, 7)"
    found = run(tables, sql, tmp_path, index_path=str(root))
    assert found.rows == rows_of(tables, sql) != []
    descriptor = found.report.descriptor
    assert {use.column: use.files for use in descriptor.index_uses} == {"id": 1, "code": 3}
    assert [planned.files for planned in descriptor.planned_files] == [1]


def damaged(folder, tables):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace("orders", "others"))


def truncated(folder, tables):
    for path in folder.glob("part-*"):
        path.write_bytes(path.read_bytes()[:-9])


def without_its_parts(folder, tables):
    for path in folder.glob("part-*"):
        path.unlink()


def of_another_version(folder, tables):
    path = folder / "manifest.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "version": 99}))


def of_another_table(folder, tables):
    (folder / "manifest.json").write_text(json.dumps({"kind": "foreign"}))


@pytest.mark.parametrize(
    "harm", [damaged, truncated, without_its_parts, of_another_version, of_another_table]
)
def test_a_damaged_index_costs_no_rows(tables, tmp_path, root, caplog, harm):
    index = build_index(tables, root, ORDERS, "id")
    harm(folder_of(root, index.table_uuid, index.field_id), tables)
    with caplog.at_level(logging.WARNING):
        found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, JOIN), "NOT_READABLE")
    lines = [each.message for each in caplog.records if "key index" in each.message]
    assert len(lines) == 1


def test_without_pyarrow_or_index_nothing_changes(tables, tmp_path, root, monkeypatch, caplog):
    lookup = "airflow_hive_opt.spark.catalog.lakes.key_indexes.find_spec"
    monkeypatch.setattr(lookup, lambda name: None)
    found = run(tables, JOIN, tmp_path, index_path=str(root))
    assert (found.rows, found.statement) == (rows_of(tables, JOIN), JOIN)
    assert "install PyArrow" in caplog.text
    monkeypatch.undo()
    for path in ("", str(tmp_path / "none"), "nowhere://a"):
        found = run(tables, JOIN, tmp_path, index_path=path)
        assert (found.statement, found.report.descriptor.index_uses) == (JOIN, ())
        assert path == "" or f"index_path {path}" in caplog.text


def test_two_applications_use_the_index_if_the_table_has_the_same_snapshot(tables, tmp_path, root):
    found = run_apart(tables, JOIN, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(tables, JOIN), "USED")
    assert found.files(ORDERS) == 3


@pytest.mark.parametrize("name", BEHIND)
def test_two_applications_drop_the_index_if_the_table_changes(tables, tmp_path, root, name):
    found = run_apart(tables, JOIN, tmp_path, lambda: BEHIND[name](tables), index_path=str(root))
    assert found.rows == rows_of(tables, JOIN)
    assert use_of(found).code == "OTHER_SNAPSHOT"
    assert "VERSION AS OF" not in found.statement


OF_ICEBERG = "spark.sql.catalog.default_rewrite_catalog"


def test_a_procedure_between_two_applications_makes_no_other_session(tables, tmp_path, root):
    """The procedure sets catalogs of Iceberg's own in the session."""
    tables.sql("CREATE TABLE lake.ki.other USING iceberg AS SELECT 1 AS id")
    rewrite = "table => 'ki.other', options => map('rewrite-all', 'true')"
    for name in (OF_ICEBERG, "spark.sql.catalog.default_iceberg"):
        tables.conf.unset(name)
    found = run_apart(
        tables,
        JOIN,
        tmp_path,
        lambda: tables.sql(f"CALL lake.system.rewrite_data_files({rewrite})"),
        index_path=str(root),
    )
    assert tables.conf.get(OF_ICEBERG)
    assert found.rows == rows_of(tables, JOIN) == literal_rows(tables, JOIN, "3, 43, 7, 5000")
    assert (use_of(found).code, found.files(ORDERS)) == ("USED", 3)
    tables.sql("DROP TABLE lake.ki.other")


def test_writes_of_other_tables_use_the_index(tables, tmp_path, root):
    expected = rows_of(tables, JOIN)
    run(
        tables, f"CREATE TABLE lake.ki.made USING iceberg AS {JOIN}", tmp_path, index_path=str(root)
    )
    assert rows_of(tables, "SELECT * FROM lake.ki.made") == expected
    found = run(tables, f"INSERT INTO lake.ki.made {JOIN}", tmp_path, index_path=str(root))
    assert (use_of(found).code, found.files(ORDERS)) == ("USED", 3)
    assert len(rows_of(tables, "SELECT * FROM lake.ki.made")) == 2 * len(expected)
    tables.sql("DROP TABLE lake.ki.made")


def test_a_statement_that_also_writes_the_table_does_not_use_the_index(tables, tmp_path, root):
    """Another run's rows between the snapshot and the statement would be overwritten."""
    sql = f"INSERT OVERWRITE {ORDERS} SELECT o.* FROM {ORDERS} o JOIN lake.ki.picked p USING (id)"
    found = run(tables, sql.replace("USING (id)", "ON o.id = p.id"), tmp_path, index_path=str(root))
    assert use_of(found).code == "NO_FIXED_SNAPSHOT"


def test_cached_rows_and_branches_leave_the_index_unused(tables, tmp_path, root):
    other = tables.newSession()
    other.sql("CACHE TABLE lake.ki.picked")
    found = run(other, JOIN, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(other, JOIN), "NO_FIXED_SNAPSHOT")
    other.sql("UNCACHE TABLE lake.ki.picked")
    other.sql(f"ALTER TABLE {ORDERS} CREATE BRANCH audit")
    sql = JOIN.replace(ORDERS, f"{ORDERS}.branch_audit")
    found = run(other, sql, tmp_path, index_path=str(root))
    assert (found.rows, use_of(found).code) == (rows_of(other, sql), "NO_FIXED_SNAPSHOT")
