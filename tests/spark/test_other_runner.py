"""What is handed over to another runner, in sessions that know nothing of this package."""

from __future__ import annotations

import pytest
from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.documents.required_keys import read_keys
from airflow_hive_opt.documents.storage import NothingThereError
from airflow_hive_opt.restriction.other_runner import handed_over
from airflow_hive_opt.spark.application.run import run_job

FACT = "SELECT f.id, f.day, f.p FROM foreign_runner.fact f JOIN foreign_runner.keys k ON "
BY_TEXT = f"{FACT} f.p = k.p AND k.id < 4"
BY_TUPLES = f"{FACT} f.p = k.p AND f.day = k.day AND k.id < 4"
BY_CONDITION = f"{FACT} month(f.day) = k.month AND k.id < 2"
UNQUALIFIED = "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p AND k.id < 4"
BY_NAMES = (
    "SELECT f.id FROM foreign_runner.fact f JOIN foreign_runner.other o ON f.p = o.p "
    "WHERE o.day = DATE'2026-02-01'"
)


@pytest.fixture(autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE foreign_runner")
    for name in ("fact", "other"):
        spark.sql(
            f"CREATE TABLE foreign_runner.{name} (id INT) PARTITIONED BY (day DATE, p STRING) "
            "STORED AS PARQUET"
        )
        spark.sql(
            f"INSERT INTO foreign_runner.{name} SELECT /*+ COALESCE(1) */ id, "
            "add_months(DATE'2026-01-01', id % 12), IF(id = 7, NULL, concat('it''s ', id % 8)) "
            "FROM (SELECT CAST(id AS INT) id FROM range(24))"
        )
    spark.sql(
        "CREATE TABLE foreign_runner.keys STORED AS PARQUET AS SELECT CAST(id AS INT) id, "
        "concat('it''s ', id) p, add_months(DATE'2026-01-01', id) day, CAST(id AS INT) + 1 month "
        "FROM range(8)"
    )
    yield
    spark.sql("DROP DATABASE foreign_runner CASCADE")


def handed(spark, tmp_path, sql, **settings):
    """What a local task in a session with these settings hands over."""
    session = session_with(spark, settings)
    outcome = run_job(session, Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK))
    assert outcome.status is Status.DONE, outcome.message
    path = UPath(tmp_path / "1.json")
    descriptor = load(path)
    try:
        keys = read_keys(path, descriptor.query_digest, descriptor.digest)
    except NothingThereError:
        keys = None
    return handed_over(descriptor, sql, keys, is_on_glue=False)


def session_with(spark, settings):
    session = spark.newSession()
    for name, value in settings.items():
        if name == "database":
            session.sql(f"USE {value}")
        else:
            session.conf.set(f"spark.sql.{name}", value)
    return session


def run(session, statements):
    """The rows of the last statement; the others run before it."""
    for sql in statements:
        found = session.sql(sql).collect()
    return sorted(map(tuple, found), key=repr)


@pytest.mark.parametrize("sql", [BY_TEXT, BY_TUPLES, BY_CONDITION, BY_NAMES])
def test_the_guarded_statement_gives_the_rows_of_the_plain_one(spark, tmp_path, sql):
    found = handed(spark, tmp_path, sql)
    session = spark.newSession()
    (scan,) = (each for each in found.partitions if each["scan"] == "f")
    assert 0 < len(scan["values"]) < scan["total"] == 24
    rows = run(session, found.guarded)
    assert rows == run(session, [sql])
    assert rows
    kept = run(session, [f"SELECT id FROM {scan['table']} WHERE {scan['condition']}"])
    assert len(kept) == len(scan["values"])  # each partition of the table has one row
    assert {row[0] for row in rows} <= {row[0] for row in kept}


def test_the_keys_have_their_query_and_their_values(spark, tmp_path):
    (scan,) = handed(spark, tmp_path, BY_TUPLES).partitions
    (keys,) = scan["keys"]
    assert (keys["name"], keys["count"]) == ("keys", 4)
    assert sorted(zip(keys["columns"], keys["types"], strict=True)) == [
        ("day", "date"),
        ("p", "string"),
    ]
    own = {tuple(map(str, row)) for row in run(spark, [keys["sql"]])}
    assert {tuple(row) for row in keys["values"]} == own
    (scan,) = handed(spark, tmp_path, BY_CONDITION).partitions
    (keys,) = scan["keys"]
    assert (keys["count"], keys["columns"], keys["values"]) == (2, None, None)


@pytest.mark.parametrize(
    ("there", "here", "message"),
    [
        ({}, {"session.timeZone": "Asia/Tokyo"}, "session.timeZone is not "),
        ({"ansi.enabled": "true"}, {"ansi.enabled": "false"}, "ansi.enabled is not true"),
        ({"ansi.enabled": "false"}, {"ansi.enabled": "true"}, "ansi.enabled is not false"),
        ({}, {"caseSensitive": "true"}, "caseSensitive is not false"),
        ({}, {"timestampType": "TIMESTAMP_NTZ"}, "timestampType is not TIMESTAMP_LTZ"),
        ({"database": "foreign_runner"}, {}, "current database is not foreign_runner"),
    ],
)
def test_another_session_fails_with_its_own_message(spark, tmp_path, there, here, message):
    sql = UNQUALIFIED if "database" in there else BY_TEXT
    found = handed(spark, tmp_path, sql, **there)
    with pytest.raises(Exception, match=f"airflow_hive_opt: .*{message}.*, as in the local task: "):
        run(session_with(spark, here), found.guarded)
    session = session_with(spark, there)
    assert run(session, found.guarded) == run(session, [sql])


@pytest.mark.parametrize(("here", "there"), [("UTC", "Etc/UTC"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_two_names_of_one_time_zone_are_equal(spark, tmp_path, here, there):
    found = handed(spark, tmp_path, BY_TEXT, **{"session.timeZone": here})
    assert run(session_with(spark, {"session.timeZone": there}), found.guarded)


NEW = "INSERT INTO foreign_runner.keys VALUES (0, 'it''s 6', DATE'2026-07-01', 7)"


@pytest.mark.parametrize("sql", [BY_TEXT, BY_TUPLES, BY_CONDITION])
def test_a_new_key_fails_and_a_key_less_does_not(spark, tmp_path, sql):
    found = handed(spark, tmp_path, sql)
    spark.sql(NEW)
    with pytest.raises(Exception, match="keys has keys now that it did not have .* and f would be"):
        run(spark.newSession(), found.guarded)
    found = handed(spark, tmp_path, sql)
    rows = "SELECT * FROM VALUES (1, 'it''s 1', DATE'2026-02-01', 2), (9, 'x', NULL, 1)"
    spark.sql(f"INSERT OVERWRITE foreign_runner.keys {rows}")
    session = spark.newSession()
    assert run(session, found.guarded) == run(session, [sql])


def test_a_key_that_took_the_place_of_another_is_noticed_if_the_keys_are_known(spark, tmp_path):
    equal, by_condition = (handed(spark, tmp_path, sql) for sql in (BY_TEXT, BY_CONDITION))
    rows = "SELECT id, IF(id = 1, 'it''s 6', p), day, IF(id = 1, 7, month) FROM foreign_runner.keys"
    spark.sql(f"CREATE TABLE foreign_runner.changed STORED AS PARQUET AS {rows}")
    spark.sql("INSERT OVERWRITE foreign_runner.keys SELECT * FROM foreign_runner.changed")
    with pytest.raises(Exception, match="keys has keys now"):
        run(spark.newSession(), equal.guarded)
    run(spark.newSession(), by_condition.guarded)  # as many keys as before


def test_keys_from_names_of_partitions_are_not_checked(spark, tmp_path):
    found = handed(spark, tmp_path, BY_NAMES)
    (session_alone,) = found.guard
    assert "__partitions_of_" not in session_alone


def test_a_statement_without_restrictions_is_the_users_own(spark, tmp_path):
    sql = "SELECT count(*) FROM foreign_runner.fact"
    found = handed(spark, tmp_path, sql)
    assert (found.guarded, found.partitions) == ([sql], ())


def test_a_key_out_of_the_range_of_its_column_is_not_new(spark, tmp_path):
    spark.sql(
        "CREATE TABLE foreign_runner.numbered (id INT) PARTITIONED BY (n INT) STORED AS PARQUET"
    )
    spark.sql(
        "INSERT INTO foreign_runner.numbered SELECT /*+ COALESCE(1) */ CAST(id AS INT), "
        "CAST(id AS INT) FROM range(9)"
    )
    spark.sql(
        "CREATE TABLE foreign_runner.numbers STORED AS PARQUET AS "
        "SELECT * FROM VALUES (2L), (1099511627776L) AS t(n)"
    )
    sql = (
        "SELECT f.id FROM foreign_runner.numbered f JOIN foreign_runner.numbers k "
        "ON f.n = k.n WHERE k.n > 0"
    )
    found = handed(spark, tmp_path, sql)
    assert run(spark.newSession(), found.guarded) == [(2,)]
    spark.sql("INSERT INTO foreign_runner.numbers VALUES (3)")
    with pytest.raises(Exception, match="numbers has keys now"):
        run(spark.newSession(), found.guarded)
