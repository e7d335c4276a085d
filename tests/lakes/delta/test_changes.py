"""MERGE writes what plain Delta writes, and reads only the files of its keys."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.lakes.databases import drop_database
from tests.lakes.delta.scanned import files_read
from tests.lakes.runs import rows_of, run, run_apart

DAYS = 10
LAYOUTS = {
    "partitions": ("PARTITIONED BY (day)", {}),
    "deletion vectors": ("PARTITIONED BY (day)", {"delta.enableDeletionVectors": "true"}),
    "column mapping": ("PARTITIONED BY (day)", {"delta.columnMapping.mode": "name"}),
    "change feed": ("PARTITIONED BY (day)", {"delta.enableChangeDataFeed": "true"}),
    "clustering": ("CLUSTER BY (day)", {}),
}
UPSERT = (
    "MERGE INTO {t} AS t USING changed AS s ON t.id = s.id AND t.day = s.day "
    "WHEN MATCHED AND s.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
)
FAILURES = (PySparkException, Py4JJavaError)


@pytest.fixture(scope="module")
def source(lake):
    lake.sql("CREATE DATABASE changes")
    lake.sql("USE changes")
    lake.sql(
        "CREATE TABLE changed USING delta AS SELECT * FROM VALUES (1L, DATE'2024-01-02', 70L), "
        "(2L, DATE'2024-01-03', -1L), (500L, DATE'2024-01-02', 71L), (501L, NULL, 72L), "
        "(502L, DATE'2031-01-01', 73L) AS t(id, day, v)"
    )
    lake.sql(
        "CREATE TABLE staged (id bigint, v bigint, day date, kind string) USING parquet "
        "PARTITIONED BY (day, kind)"
    )
    lake.sql("INSERT INTO staged SELECT id, v, day, IF(v > 70, 'a', 'b') FROM changed")
    yield lake
    lake.sql("USE default")
    drop_database(lake, "changes")


def fresh(session, name: str, layout: str = "partitions") -> str:
    clause, properties = LAYOUTS[layout]
    table = f"changes.{name}"
    session.sql(f"DROP TABLE IF EXISTS {table}")
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    session.sql(
        f"CREATE TABLE {table} (id bigint, day date, v bigint) USING delta {clause} "
        + (f"TBLPROPERTIES ({listed})" if listed else "")
    )
    rows = (
        f"SELECT id, date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day, id % 3 AS v "
        "FROM range(0, 100, 1, 1) UNION ALL SELECT 300L, NULL, 1L"
    )
    if layout == "clustering":  # a file a day
        for day in range(1, DAYS + 1):
            where = f"day = DATE'2024-01-{day:02}'" + (" OR day IS NULL" if day == 1 else "")
            session.sql(
                f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM ({rows}) WHERE {where}"
            )
    else:
        session.sql(f"INSERT INTO {table} {rows}")
    return table


def versions(session, table: str) -> int:
    return session.sql(f"DESCRIBE HISTORY {table}").count()


STATEMENTS = {
    "upsert": UPSERT,
    "insert only": (
        "MERGE INTO {t} t USING changed s ON t.day = s.day AND t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
    ),
    "without aliases": (
        "MERGE INTO {t} USING changed ON {t}.id = changed.id AND {n}.day = changed.day "
        "WHEN MATCHED THEN UPDATE SET v = changed.v"
    ),
    "every column": (
        "MERGE INTO {t} t USING (SELECT id, day, v FROM changed WHERE v > 0) s "
        "ON (t.id = s.id AND t.day = s.day) "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ),
    "condition on the source": (
        "MERGE INTO {t} t USING changed s ON t.id = s.id AND t.day = s.day AND s.v = 70 "
        "WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT *"
    ),
    "from itself": (
        "MERGE INTO {t} t USING (SELECT id, day, v + 1 AS v FROM {t} WHERE id < 3) s "
        "ON t.id = s.id AND t.day = s.day WHEN MATCHED THEN UPDATE SET *"
    ),
    "source of Hive's partitions": (
        "MERGE INTO {t} t USING staged s ON t.id = s.id AND t.day = s.day AND s.kind = 'b' "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
    ),
    "clauses with conditions": (
        "MERGE INTO {t} t USING (SELECT * FROM changed) s "
        "ON t.id = s.id AND t.day = s.day WHEN MATCHED AND s.v > 70 OR s.id = 1 THEN DELETE "
        "WHEN NOT MATCHED BY TARGET AND s.v > 71 OR s.v < 0 THEN INSERT (id, day, v) "
        "VALUES (s.id, s.day, CASE WHEN s.v > 72 THEN 1 ELSE 2 END) "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, 0)"
    ),
    "a joined source": (
        "MERGE INTO {t} t USING (SELECT c.* FROM changed b JOIN changed c ON b.id = c.id "
        "WHERE b.v < 72) s ON t.id = s.id AND t.day = s.day "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
    ),
    "an aggregated source": (
        "MERGE INTO {t} t USING (SELECT id, day, max(v) AS v FROM changed GROUP BY id, day "
        "HAVING max(v) < 72) s ON t.id = s.id AND t.day = s.day "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
    ),
}
FEW = [*((name, "partitions") for name in STATEMENTS), *(("upsert", each) for each in LAYOUTS)]


@pytest.mark.parametrize(("name", "layout"), dict.fromkeys(FEW))
def test_merge_leaves_the_table_that_plain_delta_leaves(source, tmp_path, name, layout):
    plain, ours = fresh(source, "plain", layout), fresh(source, "ours", layout)
    sql = STATEMENTS[name]
    scans = files_read(
        source, plain, lambda: source.sql(sql.format(t=plain, n=plain.rpartition(".")[2]))
    )
    assert max(scans) >= DAYS
    before = versions(source, ours)
    ran = []
    text = sql.format(t=ours, n=ours.rpartition(".")[2])
    scans = files_read(source, ours, lambda: ran.append(run(source, text, tmp_path)))
    (found,) = ran
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")
    alias = "t" if " t " in sql or " AS t " in sql else "ours"
    assert versions(source, ours) == before + 1
    if name == "from itself" and "the statement" in found.reasons:
        return  # Spark has evaluated the condition in USING on rows that the source drops
    assert found.reasons[alias] == "RESTRICTED"
    assert "DATE'2024" in found.statement
    if sql.count("{t}") == 1:
        assert max(scans) <= 3
        (planned,) = found.report.descriptor.planned_files
        assert planned.files <= 3 < DAYS <= planned.total_files


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        (
            "MERGE INTO {t} t USING changed s ON t.day = s.day AND t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE",
            {"t": "NOT_MATCHED_BY_SOURCE"},
        ),
        (
            "MERGE INTO {t} t USING changed s ON t.id = s.id WHEN MATCHED THEN DELETE",
            {"t": "NO_CONDITION_ON_PARTITION_COLUMN"},
        ),
        (
            "MERGE INTO {t} t USING changed s ON t.day <=> s.day AND t.id = s.id "
            "WHEN MATCHED THEN DELETE",
            {"t": "KEYS_NOT_COMPARED_AS_COLUMNS"},
        ),
        ("DELETE FROM {t} t WHERE t.v = 1", {"the statement": "PASSED_THROUGH"}),
        ("UPDATE {t} SET v = 7 WHERE day = DATE'2024-01-02'", {"the statement": "PASSED_THROUGH"}),
        ("DELETE FROM {t}", {"the statement": "PASSED_THROUGH"}),
    ],
)
def test_changes_of_delta_tables_that_are_not_restricted_have_a_reason(
    source, tmp_path, sql, reasons
):
    plain, ours = fresh(source, "plain"), fresh(source, "ours")
    source.sql(sql.format(t=plain))
    found = run(source, sql.format(t=ours), tmp_path)
    assert found.reasons == reasons
    assert found.statement == sql.format(t=ours)
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM {t} WHERE day IN (SELECT day FROM changed)",
        "DELETE FROM {t} t WHERE EXISTS (SELECT 1 FROM changed c WHERE c.day = t.day)",
        "UPDATE {t} SET v = v + 100 WHERE day IN (SELECT day FROM changed WHERE v > 0)",
        "MERGE INTO {t} t USING changed s ON t.id = s.id AND t.day = s.day "
        "AND t.day IN (SELECT day FROM staged) WHEN MATCHED THEN DELETE",
    ],
)
def test_subqueries_that_delta_refuses_stay_an_error(source, tmp_path, sql):
    ours = fresh(source, "ours")
    before = rows_of(source, f"SELECT * FROM {ours}")
    for attempt in (
        lambda: source.sql(sql.format(t=ours)),
        lambda: run(source, sql.format(t=ours), tmp_path),
    ):
        with pytest.raises(FAILURES, match="DELTA_UNSUPPORTED_SUBQUERY|Subqueries are not"):
            attempt()
    assert rows_of(source, f"SELECT * FROM {ours}") == before


def test_a_target_row_that_matches_twice_is_deltas_error(source, tmp_path):
    ours = fresh(source, "ours")
    before = rows_of(source, f"SELECT * FROM {ours}")
    sql = UPSERT.format(t=ours).replace(
        "USING changed AS s", "USING (SELECT * FROM changed UNION ALL SELECT * FROM changed) AS s"
    )
    with pytest.raises(FAILURES, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING"):
        run(source, sql, tmp_path)
    assert rows_of(source, f"SELECT * FROM {ours}") == before


def upsert_while_a_row_arrives(session, path, number, day):
    """Both stages with a new row of the source between them; then plain Delta's on the other."""
    plain, ours = fresh(session, "plain"), fresh(session, "ours")
    at = session.sql("DESCRIBE HISTORY changed").head()["version"]

    def arrives():
        session.sql(f"INSERT INTO changed VALUES ({number}, DATE'{day}', 99)")

    try:
        found = run_apart(session, UPSERT.format(t=ours), path, arrives)
        session.sql(UPSERT.format(t=plain))
    finally:
        session.sql(f"RESTORE TABLE changed TO VERSION AS OF {at}")
    return found, plain, ours


def test_a_source_that_changes_between_the_stages_makes_merge_run_as_plain(source, tmp_path):
    """Its new key is not among those that were read: without care it would be inserted twice."""
    found, plain, ours = upsert_while_a_row_arrives(source, tmp_path, 4, "2024-01-05")
    rows = rows_of(source, f"SELECT * FROM {ours}")
    assert rows == rows_of(source, f"SELECT * FROM {plain}")
    assert [row[2] for row in rows if row[0] == 4] == [99]
    assert found.statement == UPSERT.format(t=ours)
    assert found.reasons == {"the statement": "SOURCE_CHANGED"}
    assert versions(source, ours) == 3


def test_a_new_source_row_with_a_known_key_is_merged(source, tmp_path):
    found, plain, ours = upsert_while_a_row_arrives(source, tmp_path, 11, "2024-01-02")
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")
    assert "DATE'2024-01-02'" in found.statement


def test_a_merge_into_a_table_named_by_its_path_is_restricted(source, tmp_path):
    plain, ours = fresh(source, "plain"), fresh(source, "ours")
    path = source.sql(f"DESCRIBE DETAIL {ours}").head()["location"]
    source.sql(UPSERT.format(t=plain))
    found = run(source, UPSERT.format(t=f"delta.`{path}`"), tmp_path)
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")
    assert found.reasons["t"] == "RESTRICTED"


def test_the_change_feed_of_a_table_gives_keys_to_merge(source, tmp_path):
    """The rows that changed since a version, as ``table_changes`` gives them."""
    feed = fresh(source, "fed", "change feed")
    source.sql(f"UPDATE {feed} SET v = 55 WHERE id IN (3, 14)")
    sql = (
        "MERGE INTO {t} t USING (SELECT id, day, v FROM table_changes('changes.fed', 2) "
        "WHERE _change_type = 'update_postimage') s ON t.id = s.id AND t.day = s.day "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
    )
    plain, ours = fresh(source, "plain"), fresh(source, "ours")
    source.sql(sql.format(t=plain))
    found = run(source, sql.format(t=ours), tmp_path)
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")
    assert rows_of(source, f"SELECT id FROM {ours} WHERE v = 55") == [(14,), (3,)]
    assert found.reasons["t"] == "RESTRICTED"
    assert found.report.descriptor.planned_files[0].files == 2


OTHERS = {
    "append": "INSERT INTO {t} VALUES (777, DATE'2024-01-08', 1)",
    "merge": (
        "MERGE INTO {t} t USING (SELECT 7L AS id, DATE'2024-01-08' AS day) s "
        "ON t.id = s.id AND t.day = s.day AND t.day = DATE'2024-01-08' "
        "WHEN MATCHED THEN UPDATE SET v = 1000"
    ),
}


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("other", OTHERS)
def test_two_concurrent_merges_of_different_days_both_succeed(source, tmp_path, keys, other):
    """Another day's commit while MERGE runs. Delta compares it with what MERGE has read."""
    table = fresh(source, "both")
    sql = UPSERT.format(t=table)
    if keys:
        sql = run(source, UPSERT.format(t=fresh(source, "other")), tmp_path).statement
        sql = sql.replace("changes.other", table)
    source.udf.register("waiting", _waiting(tmp_path), "long")
    # in one task, so that the other commit has one too
    one = "(SELECT /*+ COALESCE(1) */ * FROM changed)"
    sql = sql.replace("changed AS s", f"(SELECT id, day, waiting(v) AS v FROM {one}) AS s")
    with ThreadPoolExecutor(1) as pool:
        merge = pool.submit(source.sql, sql)
        try:
            _wait_for(tmp_path / "begun", merge)
            source.newSession().sql(OTHERS[other].format(t=table))
        finally:
            (tmp_path / "go").touch()
        if not keys:
            with pytest.raises(FAILURES, match="DELTA_CONCURRENT"):
                merge.result()
            return
        merge.result()
    rows = dict(rows_of(source, f"SELECT id, v FROM {table}"))
    assert (rows[1], rows[500]) == (70, 71)
    assert rows[777 if other == "append" else 7] == (1 if other == "append" else 1000)


def _waiting(folder):
    """A function of SQL that waits for the other commit. Delta has begun its transaction then."""
    begun, go = str(folder / "begun"), str(folder / "go")

    def waiting(value):
        from pathlib import Path
        from time import sleep

        Path(begun).touch()
        while not Path(go).exists():
            sleep(0.05)
        return value

    return waiting


def _wait_for(file, merge) -> None:
    while not file.exists():
        assert not merge.done(), merge.exception()
        time.sleep(0.05)
