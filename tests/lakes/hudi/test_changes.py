"""MERGE, UPDATE and DELETE write what plain Spark writes; the keys restrict what is read."""

from __future__ import annotations

import pytest

from tests.lakes.runs import rows_of, run, run_apart

DAYS = 10
CONTENT = "SELECT id, v, day FROM {}"
UPSERT = (
    "MERGE INTO {t} AS t USING changed AS s ON t.id = s.id AND t.day = s.day "
    "WHEN MATCHED AND s.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
)


@pytest.fixture(scope="module")
def source(lake):
    lake.sql("CREATE DATABASE changes")
    lake.sql("USE changes")
    lake.sql(
        "CREATE TABLE changed USING parquet AS SELECT * FROM VALUES "
        "(1L, DATE'2024-01-02', 70L), (2L, DATE'2024-01-03', -1L), (500L, DATE'2024-01-02', 71L), "
        "(502L, DATE'2031-01-01', 73L) AS t(id, day, v)"
    )
    yield lake
    lake.sql("USE default")
    lake.sql("DROP DATABASE changes CASCADE")


def fresh(session, name: str, type_: str, key: str = "id") -> str:
    table = f"changes.{name}"
    session.sql(f"DROP TABLE IF EXISTS {table}")
    keyed = f", primaryKey = '{key}'" if key else ""
    session.sql(
        f"CREATE TABLE {table} (id bigint, v bigint, day date) USING hudi PARTITIONED BY (day) "
        f"TBLPROPERTIES (type = '{type_}'{keyed})"
    )
    session.sql(
        f"INSERT INTO {table} SELECT id, id % 3 AS v, "
        f"date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day "
        "FROM range(100) UNION ALL SELECT 300L, 1L, NULL"
    )
    return table


@pytest.fixture(params=["cow", "mor"])
def pair(request, source):
    """Two tables with the same rows: one for plain Spark, one for the package."""
    return source, fresh(source, "plain", request.param), fresh(source, "ours", request.param)


STATEMENTS = {
    "delete": "DELETE FROM {t} WHERE day IN (SELECT day FROM changed)",
    "delete some": "DELETE FROM {t} t WHERE v > 0 AND EXISTS (SELECT 1 FROM changed c "
    "WHERE c.day = t.day AND c.v > 70)",
    "update": "UPDATE {t} SET v = v + 100 WHERE day IN (SELECT day FROM changed WHERE v > 0)",
    "update by one value": "UPDATE {t} t SET v = 5 WHERE t.day = (SELECT min(day) FROM changed)",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_update_and_delete_leave_the_table_that_plain_spark_leaves(pair, tmp_path, name):
    session, plain, ours = pair
    sql = STATEMENTS[name]
    session.sql(sql.format(t=plain))
    found = run(session, sql.format(t=ours), tmp_path)
    assert rows_of(session, CONTENT.format(ours)) == rows_of(session, CONTENT.format(plain))
    alias = "t" if " t " in sql else "ours"
    assert found.reasons[alias] == "RESTRICTED"
    assert "DATE'2024" in found.statement
    (planned,) = found.report.descriptor.planned_files
    assert planned.files <= 2


@pytest.mark.parametrize("key", ["id", ""])
def test_merge_passes_through(source, tmp_path, key):
    plain, ours = (fresh(source, name, "cow", key) for name in ("plain", "ours"))
    source.sql(UPSERT.format(t=plain))
    found = run(source, UPSERT.format(t=ours), tmp_path)
    assert rows_of(source, CONTENT.format(ours)) == rows_of(source, CONTENT.format(plain))
    assert found.reasons == {"the statement": "PASSED_THROUGH"}
    assert found.statement == UPSERT.format(t=ours)
    (decision,) = found.report.descriptor.decisions
    assert "Hudi" in decision.message


def test_a_target_that_changes_between_the_stages_has_plain_sparks_rows(pair, tmp_path):
    session, plain, ours = pair
    sql = "DELETE FROM {t} t WHERE t.day IN (SELECT day FROM changed)"
    new = "INSERT INTO {t} VALUES (600, 1, DATE'2031-01-01')"
    run_apart(session, sql.format(t=ours), tmp_path, lambda: session.sql(new.format(t=ours)))
    session.sql(new.format(t=plain))
    session.sql(sql.format(t=plain))
    rows = rows_of(session, CONTENT.format(ours))
    assert rows == rows_of(session, CONTENT.format(plain))
    assert 600 not in [row[0] for row in rows]
