"""MERGE, UPDATE and DELETE write what plain Spark writes, and read only the files of their keys."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.required_keys import read_keys
from airflow_hive_opt.documents.storage import NothingThereError
from airflow_hive_opt.restriction.other_runner import handed_over
from airflow_hive_opt.restriction.row_changes import SOURCE_CHANGED
from airflow_hive_opt.spark.map_join.command import Command
from tests.lakes.runs import rows_of, run, run_apart
from tests.lakes.session import needs_jvm
from tests.spark.stages import job_of, prune

DAYS = 10
MODES = ("copy-on-write", "merge-on-read")
UPSERT = (
    "MERGE INTO {t} AS t USING changed AS s ON t.id = s.id AND t.day = s.day "
    "WHEN MATCHED AND s.v < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT (id, day, v) VALUES (s.id, s.day, s.v)"
)


@pytest.fixture(scope="module")
def source(lake):
    lake.sql("CREATE NAMESPACE lake.changes")
    lake.sql(
        "CREATE TABLE changed AS SELECT * FROM VALUES (1L, DATE'2024-01-02', 70L), "
        "(2L, DATE'2024-01-03', -1L), (500L, DATE'2024-01-02', 71L), (501L, NULL, 72L), "
        "(502L, DATE'2031-01-01', 73L) AS t(id, day, v)"
    )
    lake.sql(
        "CREATE TABLE staged (id bigint, v bigint, day date, kind string) USING parquet "
        "PARTITIONED BY (day, kind)"
    )
    lake.sql("INSERT INTO staged SELECT id, v, day, IF(v > 70, 'a', 'b') FROM changed")
    lake.sql(
        "CREATE TABLE lake.changes.staged USING iceberg PARTITIONED BY (day) "
        "AS SELECT * FROM staged"
    )
    yield lake
    lake.sql("DROP TABLE changed")
    lake.sql("DROP TABLE staged")


def fresh(session, name: str, mode: str = MODES[0], isolation: str = "serializable") -> str:
    table = f"lake.changes.{name}"
    session.sql(f"DROP TABLE IF EXISTS {table}")
    properties = ", ".join(
        f"'write.{kind}.mode' = '{mode}', 'write.{kind}.isolation-level' = '{isolation}'"
        for kind in ("merge", "update", "delete")
    )
    session.sql(
        f"CREATE TABLE {table} USING iceberg PARTITIONED BY (day) "
        f"TBLPROPERTIES ('format-version' = '2', {properties}) AS "
        f"SELECT id, date_add(DATE'2024-01-01', cast(id % {DAYS} as int)) AS day, id % 3 AS v "
        "FROM range(100) UNION ALL SELECT 300L, NULL, 1L"
    )
    return table


@pytest.fixture(params=MODES)
def pair(request, source):
    """Two tables with the same rows: one for plain Spark, one for the package."""
    return source, fresh(source, "plain", request.param), fresh(source, "ours", request.param)


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
    "source of Iceberg's partitions": (
        "MERGE INTO {t} t USING (SELECT * FROM lake.changes.staged) s "
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
    "update only": (
        "MERGE INTO {t} t USING changed s ON t.id = s.id AND t.day = s.day "
        "WHEN MATCHED THEN UPDATE SET v = s.v"
    ),
    "delete": "DELETE FROM {t} WHERE day IN (SELECT day FROM changed)",
    "delete some": "DELETE FROM {t} t WHERE v > 0 AND EXISTS (SELECT 1 FROM changed c "
    "WHERE c.day = t.day AND c.v > 70)",
    "update": "UPDATE {t} SET v = v + 100 WHERE day IN (SELECT day FROM changed WHERE v > 0)",
    "update by one value": "UPDATE {t} t SET t.v = 5 WHERE t.day = (SELECT min(day) FROM changed)",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_merge_update_and_delete_leave_the_table_that_plain_spark_leaves(pair, tmp_path, name):
    session, plain, ours = pair
    sql = STATEMENTS[name]
    session.sql(sql.format(t=plain, n=plain.rpartition(".")[2]))
    found = run(session, sql.format(t=ours, n=ours.rpartition(".")[2]), tmp_path)
    assert rows_of(session, f"SELECT * FROM {ours}") == rows_of(session, f"SELECT * FROM {plain}")
    alias = "t" if " t " in sql or " AS t " in sql else "ours"
    assert found.reasons[alias] == "RESTRICTED"
    assert "DATE'2024" in found.statement
    assert session.sql(f"SELECT 1 FROM {ours}.snapshots").count() == 2
    reads_itself = sql.count("{t}") == 2
    assert reads_itself or all(read.files <= 6 for read in found.report.reads if read.table == ours)


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
        ("DELETE FROM {t} t WHERE t.v = 1", {"t": "NO_CONDITION_ON_PARTITION_COLUMN"}),
        ("DELETE FROM {t}", {"the statement": "PASSED_THROUGH"}),
    ],
)
def test_changes_of_iceberg_tables_that_are_not_restricted_have_a_reason(
    source, tmp_path, sql, reasons
):
    plain, ours = fresh(source, "plain"), fresh(source, "ours")
    source.sql(sql.format(t=plain))
    found = run(source, sql.format(t=ours), tmp_path)
    assert found.reasons == reasons
    assert found.statement == sql.format(t=ours)
    assert rows_of(source, f"SELECT * FROM {ours}") == rows_of(source, f"SELECT * FROM {plain}")


def test_a_target_row_that_matches_twice_is_sparks_error(pair, tmp_path):
    session, _, ours = pair
    before = rows_of(session, f"SELECT * FROM {ours}")
    sql = UPSERT.format(t=ours).replace(
        "USING changed AS s", "USING (SELECT * FROM changed UNION ALL SELECT * FROM changed) AS s"
    )
    with pytest.raises((PySparkException, Py4JJavaError), match="MERGE_CARDINALITY_VIOLATION"):
        run(session, sql, tmp_path)
    assert rows_of(session, f"SELECT * FROM {ours}") == before


def upsert_while_a_row_arrives(pair, path, number, day):
    """Both stages with a new row of the source between them; then plain Spark's on the other."""
    session, plain, ours = pair

    def arrives():
        session.sql(f"INSERT INTO changed VALUES ({number}, DATE'{day}', 99)")

    try:
        found = run_apart(session, UPSERT.format(t=ours), path, arrives)
        session.sql(UPSERT.format(t=plain))
    finally:
        forget_arrivals(session)
    return found


def forget_arrivals(session):
    session.sql("CREATE TABLE kept AS SELECT * FROM changed WHERE v <> 99")
    session.sql("INSERT OVERWRITE changed SELECT * FROM kept")
    session.sql("DROP TABLE kept")


def test_a_new_key_of_the_source_makes_merge_run_again_as_plain_spark(pair, tmp_path):
    """Its new key is not among those that were read: without care it would be inserted twice."""
    session, plain, ours = pair
    found = upsert_while_a_row_arrives(pair, tmp_path, 4, "2024-01-05")
    rows = rows_of(session, f"SELECT * FROM {ours}")
    assert rows == rows_of(session, f"SELECT * FROM {plain}")
    assert [row for row in rows if row[0] == 4] == [(4, rows[0][1].replace(day=5), 99)]
    assert found.statement == UPSERT.format(t=ours)
    assert found.reasons == {"the statement": "SOURCE_CHANGED"}
    assert session.sql(f"SELECT 1 FROM {ours}.snapshots").count() == 2


def test_a_new_row_of_the_target_between_the_stages_has_plain_sparks_result(pair, tmp_path):
    """Its new day must still find its match in the table of NOT EXISTS."""
    session, plain, ours = pair
    known = "SELECT 1 FROM lake.changes.staged s WHERE s.day = t.day"
    sql = f"DELETE FROM {{t}} t WHERE NOT EXISTS ({known})"
    new = "INSERT INTO {t} VALUES (600, DATE'2031-01-01', 1)"
    found = run_apart(
        session, sql.format(t=ours), tmp_path, lambda: session.sql(new.format(t=ours))
    )
    session.sql(new.format(t=plain))
    session.sql(sql.format(t=plain))
    rows = rows_of(session, f"SELECT * FROM {ours}")
    assert rows == rows_of(session, f"SELECT * FROM {plain}")
    assert 600 in [row[0] for row in rows]
    assert found.reasons["s"] == "KEYS_OF_THE_TARGET"


def test_a_new_source_row_with_a_known_key_is_merged(pair, tmp_path):
    session, plain, ours = pair
    found = upsert_while_a_row_arrives(pair, tmp_path, 11, "2024-01-02")
    assert rows_of(session, f"SELECT * FROM {ours}") == rows_of(session, f"SELECT * FROM {plain}")
    assert "DATE'2024-01-02'" in found.statement


def test_a_merge_into_a_parquet_table_has_sparks_own_error(source, tmp_path):
    source.sql("CREATE TABLE files (id bigint, day date, v bigint) USING parquet")
    with pytest.raises(PySparkException, match="MERGE"):
        run(source, UPSERT.format(t="files"), tmp_path)
    source.sql("DROP TABLE files")


@needs_jvm
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("keys", [False, True])
def test_two_concurrent_merges_of_different_days_both_succeed(source, tmp_path, isolation, keys):
    """The second commit of two that began with the same snapshot. Iceberg compares their filters.

    Plain, the second one fails under serializable isolation, since it has read the whole table.
    """
    table = fresh(source, "both", isolation=isolation)
    sql = UPSERT.format(t=table)
    if keys:
        sql = run(source, UPSERT.format(t=fresh(source, "other")), tmp_path).statement
        sql = sql.replace("lake.changes.other", table)
    first = Command(source, sql, {})
    first.plan()
    another = source.newSession()  # a session keeps the table as it has loaded it
    another.sql(f"INSERT INTO {table} VALUES (77, DATE'2024-01-08', 1)")
    if isolation == "serializable" and not keys:
        with pytest.raises((PySparkException, Py4JJavaError), match="conflicting files"):
            first.run_as_planned()
        return
    assert first.run_as_planned()
    rows = rows_of(source, f"SELECT id, v FROM {table}")
    assert {(77, 1), (1, 70), (500, 71)} <= set(rows)


@needs_jvm  # only there files are counted before the statement
def test_many_scattered_keys_read_only_their_files(source, tmp_path):
    """Ranges would leave nearly all of them. A row whose key was not read still fails the MERGE."""
    source.sql(
        "CREATE TABLE lake.changes.contexts (id int, v int) USING iceberg PARTITIONED BY (id)"
    )
    source.sql("INSERT INTO lake.changes.contexts SELECT id, 0 FROM range(500)")
    source.sql("CREATE TABLE batch USING parquet AS SELECT id * 2 AS id FROM range(220)")
    merge = (
        "MERGE INTO lake.changes.contexts t USING batch s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 2)"
    )
    try:
        found = run(source, merge, tmp_path)
        assert len(found.values["id"]) == 220
        assert found.report.descriptor.planned_files[0].files == 220
        sql = "SELECT id, v FROM lake.changes.contexts WHERE v > 0"
        assert rows_of(source, sql) == sorted(((id_, 1) for id_ in range(0, 440, 2)), key=repr)

        def arrives():
            source.sql("INSERT INTO batch VALUES (1), (5000)")

        found = run_apart(source, merge, tmp_path, arrives)
        assert found.reasons == {"the statement": "SOURCE_CHANGED"}
        rows = dict(rows_of(source, sql))
        assert (len(rows), rows[1], rows[5000]) == (222, 1, 2)
    finally:
        source.sql("DROP TABLE lake.changes.contexts")
        source.sql("DROP TABLE batch")


def handed_to_another_runner(session, sql, path):
    file = UPath(path) / "1.json"
    descriptor = prune(session, job_of(sql), file).descriptor
    try:
        keys = read_keys(file, descriptor.query_digest, descriptor.digest)
    except NothingThereError:
        keys = None
    return handed_over(descriptor, sql, keys, is_on_glue=False)


def test_another_runner_writes_what_plain_spark_writes(pair, tmp_path):
    session, plain, ours = pair
    handed = handed_to_another_runner(session, UPSERT.format(t=ours), tmp_path)
    assert "day" in {name for each in handed.partitions for name in each["columns"]}
    for text in (*handed.guarded, UPSERT.format(t=plain)):
        session.sql(text).collect()
    rows = rows_of(session, f"SELECT * FROM {ours}")
    assert rows == rows_of(session, f"SELECT * FROM {plain}")
    join = f"SELECT t.v FROM {ours} t JOIN changed s ON t.day = s.day AND s.v > 0"
    selected = handed_to_another_runner(session, join, tmp_path / "join")
    (scan,) = selected.partitions
    assert [key["columns"] for key in scan["keys"]] == [["day"]]
    for text in selected.guarded:
        found = session.sql(text).collect()
    assert sorted(map(tuple, found), key=repr) == rows_of(session, join)
    session.sql("INSERT INTO changed VALUES (900, DATE'2024-01-09', 99)")
    try:
        for statements, message in (
            (handed.guarded, SOURCE_CHANGED),
            (selected.guarded, "has keys"),
        ):
            with pytest.raises((PySparkException, Py4JJavaError), match=message):
                for text in statements:
                    session.sql(text).collect()
    finally:
        forget_arrivals(session)
    assert rows_of(session, f"SELECT * FROM {ours}") == rows
