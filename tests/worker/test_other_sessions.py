"""A worker's list in a session that reads the statement differently: Spark reads the keys again."""

from __future__ import annotations

import pytest

from tests.spark.test_bound_names import drop_database
from tests.worker.tasks import hand_over

SQL = (
    "SELECT f.id, f.p FROM worker_fact f JOIN worker_keys k ON f.p = k.p "
    "AND length(k.s) = 2 AND k.id < 3"
)
INTO = "STORED AS PARQUET AS SELECT CAST(id AS INT) id, CAST(id + {} AS INT) p, 'ab' s"


@pytest.fixture(scope="module", autouse=True)
def tables(session):
    """They are in the database ``default``, which is the current one of a new session."""
    session.sql("CREATE TABLE worker_fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    session.sql("INSERT INTO worker_fact SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)")
    yield
    session.sql("DROP TABLE IF EXISTS worker_fact")


@pytest.fixture(autouse=True)
def keys(session):
    session.sql(f"CREATE TABLE worker_keys {INTO.format(0)} FROM range(12)")
    yield
    session.sql("DROP TABLE IF EXISTS worker_keys")


@pytest.fixture
def other(session):
    """A session of its own for the map join."""
    return session.newSession()


def read_again(tasks, caplog, why, session=None, between=(), sql=SQL):
    caplog.clear()
    with caplog.at_level("INFO"):
        handed = hand_over(tasks, sql, session, between)
    assert handed.descriptor.kept == 3
    assert handed.reader == "spark"
    assert "Spark reads the keys of the worker again: " in caplog.text
    assert why in caplog.text
    return handed


def test_a_session_with_the_same_tables_uses_the_workers_list(tasks, other):
    assert hand_over(tasks, SQL, other).reader == "worker"


def test_keys_are_read_again_if_the_small_table_is_another_one(tasks, caplog, tmp_path):
    made = f"CREATE TABLE worker_keys STORED AS PARQUET LOCATION '{tmp_path}/keys'"
    handed = read_again(
        tasks,
        caplog,
        "default.worker_keys lies in ",
        between=(
            "DROP TABLE worker_keys",
            made + INTO.format(5)[len("STORED AS PARQUET") :] + " FROM range(12)",
        ),
    )
    assert handed.outcome.summary["decisions"][0]["kept"] == 3
    assert sorted(handed.outcome.rows) == [("5", "5"), ("6", "6"), ("7", "7")]


def test_keys_are_read_again_if_the_big_table_is_another_one(tasks, caplog, tmp_path, session):
    made = "CREATE TABLE worker_fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET "
    try:
        handed = read_again(
            tasks,
            caplog,
            "default.worker_fact lies in ",
            between=(
                "DROP TABLE worker_fact",
                f"{made} LOCATION '{tmp_path}/fact'",
                "INSERT INTO worker_fact SELECT CAST(id + 50 AS INT), CAST(id AS INT) FROM "
                "range(2, 20)",
            ),
        )
        assert handed.outcome.rows == (("52", "2"),)
    finally:
        session.sql("DROP TABLE worker_fact")
        session.sql(made)
        session.sql(
            "INSERT INTO worker_fact SELECT CAST(id AS INT), CAST(id AS INT) FROM range(12)"
        )


def test_keys_are_read_again_if_a_temporary_view_hides_the_small_table(tasks, caplog, other):
    other.sql("SELECT 1 AS id, 9 AS p, 'ab' AS s").createOrReplaceTempView("worker_keys")
    said = "worker_keys is a temporary view in the map join and not in the local task"
    handed = read_again(tasks, caplog, said, other)
    assert handed.outcome.rows == (("9", "9"),)


def test_keys_are_read_again_if_the_user_redefines_a_function(tasks, caplog, other):
    other.udf.register("length", lambda text: 7, "int")
    read_again(tasks, caplog, "the function length is defined in the map join", other)


def test_a_redefined_function_that_the_worker_left_out_does_not_matter(tasks, other):
    """Conditions that were left out cost no row, whatever they mean."""
    other.udf.register("reverse", lambda text: "ba", "string")
    handed = hand_over(tasks, SQL.replace("k.id < 3", "k.id < 3 AND reverse(k.s) = 'ba'"), other)
    assert handed.reader == "worker"
    assert len(handed.outcome.rows) == 3


def test_keys_are_read_again_in_a_session_with_another_database(
    tasks, caplog, other, session, tmp_path
):
    session.sql(f"CREATE DATABASE worker_other LOCATION '{tmp_path}/other'")
    try:
        session.sql(f"CREATE TABLE worker_other.worker_keys {INTO.format(7)} FROM range(12)")
        session.sql("CREATE TABLE worker_other.worker_fact AS SELECT * FROM worker_fact")
        other.sql("USE worker_other")
        handed = read_again(
            tasks,
            caplog,
            "the current database was default in the local task and is worker_other",
            other,
        )
        assert sorted(handed.outcome.rows) == [("7", "7"), ("8", "8"), ("9", "9")]
    finally:
        drop_database(session, "worker_other")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.parquet.binaryAsString", "true"),
        ("spark.sql.legacy.sizeOfNull", "true"),
        ("spark.sql.legacy.parquet.nanosAsLong", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
    ],
)
def test_keys_are_read_again_if_a_setting_may_change_values(tasks, caplog, other, name, value):
    other.conf.set(name, value)
    handed = read_again(tasks, caplog, f"{name} was ", other)
    assert len(handed.outcome.rows) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.session.timeZone", "Asia/Tokyo"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
        ("spark.sql.shuffle.partitions", "3"),
    ],
)
def test_settings_that_can_not_change_keys_do_not_matter(tasks, other, name, value):
    other.conf.set(name, value)
    handed = hand_over(tasks, SQL, other)
    assert (handed.reader, len(handed.outcome.rows)) == ("worker", 3)


def test_the_log_names_all_differences_of_a_session(tasks, caplog, other):
    other.conf.set("spark.sql.caseSensitive", "true")
    other.sql("SELECT 1 AS id, 9 AS p, 'ab' AS s").createOrReplaceTempView("worker_keys")
    read_again(tasks, caplog, "spark.sql.caseSensitive was false in the local task", other)
    assert "worker_keys is a temporary view in the map join" in caplog.text
