"""Branches, tags, staged writes, views and metadata tables: the rows are plain Spark's."""

from __future__ import annotations

import pytest

from airflow_hive_opt.statement.settings import Settings
from tests.lakes.runs import rows_of, run

MERGE = (
    "MERGE INTO {0} t USING lake.kinds.changed c ON t.id = c.id AND t.day = c.day "
    "WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT *"
)
JOIN = "SELECT b.id, b.v FROM {0} b JOIN lake.kinds.changed c ON b.day = c.day"


@pytest.fixture(scope="module")
def changed(lake):
    lake.sql("CREATE NAMESPACE lake.kinds")
    lake.sql(
        "CREATE TABLE lake.kinds.changed USING iceberg AS SELECT * FROM VALUES "
        "(2L, DATE'2024-01-03', 7), (500L, DATE'2024-01-05', 8) AS t(id, day, v)"
    )
    yield lake
    lake.sql("DROP TABLE lake.kinds.changed")


@pytest.fixture
def pair(changed):
    """A session and two equal tables; each has a branch and a tag without its last rows."""
    names = "lake.kinds.plain", "lake.kinds.ours"
    for name in names:
        changed.sql(
            f"CREATE TABLE {name} USING iceberg PARTITIONED BY (day) AS SELECT id, "
            "date_add(DATE'2024-01-01', cast(id % 20 AS int)) AS day, 0 AS v FROM range(100)"
        )
        changed.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
        changed.sql(f"ALTER TABLE {name} CREATE TAG before")
        changed.sql(f"INSERT INTO {name} VALUES (900, DATE'2024-01-03', 1)")
    yield changed, *names
    for name in names:
        changed.sql(f"DROP TABLE {name}")


@pytest.mark.parametrize("version", ["branch_audit", "tag_before"])
def test_a_join_with_a_branch_or_tag_is_restricted(pair, tmp_path, version):
    session, _, ours = pair
    sql = JOIN.format(f"{ours}.{version}")
    found = run(session, sql, tmp_path)
    assert found.rows == rows_of(session, sql)
    assert (found.reasons, len(found.rows)) == ({"b": "RESTRICTED"}, 10)
    assert [read.files for read in found.report.reads if read.table.startswith(ours)] == [2]
    assert found.report.descriptor.planned_files[0].files is None


@pytest.mark.parametrize(
    "sql",
    [
        MERGE,
        "DELETE FROM {0} WHERE day IN (SELECT day FROM lake.kinds.changed)",
        "UPDATE {0} SET v = 5 WHERE day IN (SELECT day FROM lake.kinds.changed WHERE v = 7)",
    ],
)
def test_a_change_of_a_branch_leaves_main_and_tags_unchanged(pair, tmp_path, sql):
    session, plain, ours = pair
    before = rows_of(session, f"SELECT * FROM {ours}")
    session.sql(sql.format(f"{plain}.branch_audit"))
    found = run(session, sql.format(f"{ours}.branch_audit"), tmp_path)
    assert "RESTRICTED" in found.reasons.values()
    rows = rows_of(session, f"SELECT * FROM {ours}.branch_audit")
    assert rows == rows_of(session, f"SELECT * FROM {plain}.branch_audit")
    assert rows != rows_of(session, f"SELECT * FROM {ours}.tag_before")
    assert rows_of(session, f"SELECT * FROM {ours}") == before


@pytest.mark.parametrize("setting", ["spark.wap.id", "spark.wap.branch"])
def test_staged_writes_have_plain_sparks_rows_after_publishing(pair, tmp_path, setting):
    """Staged by an ID, a MERGE reads the table; on a branch, it reads the branch."""
    session, plain, ours = pair
    session = session.newSession()
    for table in (plain, ours):
        session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    before = rows_of(session, f"SELECT * FROM {ours}")
    session.conf.set(setting, "staged")
    session.sql(MERGE.format(plain))
    found = run(session, MERGE.format(ours), tmp_path)
    assert found.reasons == {"t": "RESTRICTED"}
    session.conf.unset(setting)
    assert rows_of(session, f"SELECT * FROM {ours}") == before
    for table in (plain, ours):
        name = table.removeprefix("lake.")
        if setting == "spark.wap.id":
            session.sql(f"CALL lake.system.publish_changes('{name}', 'staged')")
        else:
            session.sql(f"CALL lake.system.fast_forward('{name}', 'main', 'staged')")
    rows = rows_of(session, f"SELECT * FROM {ours}")
    assert rows == rows_of(session, f"SELECT * FROM {plain}")
    assert len(rows) == 102


def test_a_scan_of_a_named_version_is_read_whole(pair, tmp_path):
    session, _, ours = pair
    sql = JOIN.format(f"{ours} VERSION AS OF 'before'")
    found = run(session, sql, tmp_path)
    assert found.rows == rows_of(session, sql)
    assert found.reasons == {"b": "SCAN_NOT_RESTRICTABLE"}


@pytest.mark.parametrize(
    ("metadata", "column"),
    [
        ("files", "record_count"),
        ("partitions", "record_count"),
        ("snapshots", "snapshot_id"),
        ("entries", "snapshot_id"),
        ("refs", "snapshot_id"),
    ],
)
def test_metadata_tables_are_left_whole(pair, tmp_path, metadata, column):
    session, _, ours = pair
    sql = f"SELECT b.* FROM {ours}.{metadata} b JOIN lake.kinds.changed c ON b.{column} = c.id"
    asked = Settings.of(switches={"key_predicate": True})
    found = run(session, sql, tmp_path, settings=asked)
    assert found.rows == rows_of(session, sql)
    assert "RESTRICTED" not in found.reasons.values()


DOTTED = {
    "lake.kinds.`by.day`": "lake.kinds.by.day",
    "lake.`kinds.of`.by_day": "lake.kinds.of.by_day",
    "of_current": "lake.kinds.now.of_current",
}


@pytest.mark.parametrize(("name", "twin"), DOTTED.items(), ids=DOTTED)
def test_a_table_with_a_dot_in_its_name_is_left_whole(pair, tmp_path, name, twin):
    """Its full name is also that of a table in another namespace, which has other rows."""
    session, _, ours = pair
    session = session.newSession()
    for namespace in ("`kinds.of`", "kinds.by", "kinds.of", "`kinds.now`", "kinds.now"):
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
    if name == "of_current":
        session.sql("USE lake.`kinds.now`")
    made = "USING iceberg PARTITIONED BY (day) AS SELECT *"
    session.sql(f"CREATE TABLE {name} {made} FROM {ours}")
    session.sql(f"CREATE TABLE {twin} {made} FROM {ours} WHERE id < 2")
    sql = f"SELECT b.id FROM {name} b JOIN lake.kinds.changed c ON b.day = c.day"
    try:
        found = run(session, sql, tmp_path)
        assert found.rows == rows_of(session, sql) != []
        assert "RESTRICTED" not in found.reasons.values()
    finally:
        for table in (name, twin):
            session.sql(f"DROP TABLE {table}")


@pytest.fixture
def view(lake):
    """A view of the REST catalog; a catalog in a folder has none."""
    lake.sql("CREATE NAMESPACE rest.kinds")
    lake.sql(
        "CREATE TABLE rest.kinds.big USING iceberg PARTITIONED BY (day) AS SELECT id, "
        "date_add(DATE'2024-01-01', cast(id % 20 AS int)) AS day, 0 AS v FROM range(100)"
    )
    lake.sql(
        "CREATE TABLE rest.kinds.changed USING iceberg AS SELECT * FROM VALUES "
        "(2L, DATE'2024-01-03', 7) AS t(id, day, v)"
    )
    lake.sql("CREATE VIEW rest.kinds.seen AS SELECT id, day, v FROM rest.kinds.big")
    lake.sql("CREATE VIEW rest.kinds.news AS SELECT id, day, v FROM rest.kinds.changed")
    yield lake
    for name in ("seen", "news"):
        lake.sql(f"DROP VIEW rest.kinds.{name}")
    for name in ("big", "changed"):
        lake.sql(f"DROP TABLE rest.kinds.{name}")
    lake.sql("DROP NAMESPACE rest.kinds")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT b.id FROM rest.kinds.seen b JOIN rest.kinds.changed c ON b.day = c.day",
        "SELECT b.id FROM rest.kinds.big b JOIN rest.kinds.news c ON b.day = c.day",
    ],
)
def test_a_statement_with_a_view_of_a_catalog_passes_through(view, tmp_path, sql):
    found = run(view, sql, tmp_path)
    assert found.rows == rows_of(view, sql)
    assert found.statement == sql
    print(found.report.descriptor.decisions)
    assert found.reasons == {"the statement": "PASSED_THROUGH"}
