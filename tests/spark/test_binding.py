"""A session uses the list of another one only if both read the statement in the same way."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from tests.spark.handed_over import map_join_of

TIMES = (
    "SELECT f.id FROM bound.fact f JOIN bound.moments m ON f.day = CAST(m.at AS DATE) "
    "WHERE m.name = 'late'"
)
SALES = "SELECT f.id FROM fact f JOIN bound.keys k ON f.p = k.p"


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    for name in ("bound", "unbound"):
        spark.sql(f"CREATE DATABASE {name}")
    spark.sql("CREATE TABLE bound.fact (id INT) PARTITIONED BY (day DATE, p INT) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO bound.fact SELECT id, date_add(DATE'2026-01-01', id), id "
        "FROM (SELECT CAST(id AS INT) id FROM range(10))"
    )
    spark.sql("CREATE TABLE unbound.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql(
        "INSERT INTO unbound.fact SELECT CAST(id AS INT) + 50, CAST(id AS INT) FROM range(10)"
    )
    spark.sql("CREATE TABLE bound.keys USING parquet AS SELECT 2 AS p")
    spark.sql(
        "CREATE TABLE bound.moments USING parquet AS SELECT 'late' AS name, "
        "TIMESTAMP'2026-01-03 20:00:00Z' AS at"
    )
    yield
    for name in ("bound", "unbound"):
        spark.sql(f"DROP DATABASE {name} CASCADE")


def hand_over(spark, tmp_path, sql: str, there: dict[str, str], here: dict[str, str]) -> Outcome:
    """The map join of a list that was made under the settings of ``there``."""
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK)
    pruned = run_job(with_settings(spark, there), first)
    assert pruned.status is Status.DONE, pruned.message
    return run_job(with_settings(spark, here), map_join_of(first, pruned))


def with_settings(spark, settings: dict[str, str]):
    session = spark.newSession()
    for name, value in settings.items():
        if name == "database":
            session.sql(f"USE {value}")
        else:
            session.conf.set(name, value)
    return session


ZONE = "spark.sql.session.timeZone"


def test_two_names_of_one_time_zone_are_equal_settings(spark, tmp_path):
    done = hand_over(spark, tmp_path, TIMES, {ZONE: "UTC"}, {ZONE: "Etc/UTC"})
    assert done.status is Status.DONE
    assert done.rows == (("2",),)


@pytest.mark.parametrize(
    ("sql", "there", "here", "named"),
    [
        (
            TIMES,
            {ZONE: "UTC"},
            {ZONE: "Asia/Kolkata"},
            f"{ZONE} was UTC in the local task and is Asia/Kolkata",
        ),
        (SALES, {"database": "bound"}, {"database": "unbound"}, "current database was bound in"),
        (TIMES, {}, {"spark.sql.ansi.enabled": "false"}, "spark.sql.ansi.enabled was true"),
        (
            TIMES,
            {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
            {},
            "spark.sql.legacy.timeParserPolicy was LEGACY in the local task",
        ),
        (
            TIMES,
            {},
            {"spark.sql.legacy.sizeOfNull": "false"},
            "spark.sql.legacy.sizeOfNull was not set in the local task and is false",
        ),
        (
            TIMES,
            {},
            {"spark.sql.json.enablePartialResults": "false"},
            "enablePartialResults was not set in the local task",
        ),
        (
            TIMES,
            {},
            {"spark.sql.chunkBase64String.enabled": "false"},
            "chunkBase64String.enabled was not set in the local task",
        ),
        (
            TIMES,
            {},
            {"spark.sql.icu.caseMappings.enabled": "false"},
            "caseMappings.enabled was not",
        ),
        (
            TIMES,
            {},
            {"spark.sql.columnNameOfCorruptRecord": "bad"},
            "columnNameOfCorruptRecord was not set",
        ),
        (TIMES, {}, {"spark.sql.path.enabled": "true"}, "spark.sql.path.enabled was not set"),
        (TIMES, {}, {"spark.sql.caseSensitive": "true"}, "spark.sql.caseSensitive was false"),
    ],
)
def test_a_list_is_refused_in_a_session_with_other_settings(
    spark, tmp_path, sql, there, here, named
):
    refused = hand_over(spark, tmp_path, sql, there, here)
    assert refused.status is Status.REFUSED  # a retry would be refused too
    assert named in refused.message
    assert "run the local task again" in refused.message


@pytest.mark.parametrize("table", ["fact", "keys"])
def test_a_list_is_refused_if_a_table_moved(spark, tmp_path, table):
    sql = "SELECT f.id FROM bound.fact f JOIN bound.keys k ON f.p = k.p"
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK)
    joined = map_join_of(first, run_job(spark, first))
    location = spark.sql(f"DESCRIBE FORMATTED bound.{table}").where("col_name = 'Location'")
    before = location.collect()[0]["data_type"]
    spark.sql(f"ALTER TABLE bound.{table} SET LOCATION '{tmp_path}/elsewhere'")
    try:
        refused = run_job(spark, joined)
    finally:
        spark.sql(f"ALTER TABLE bound.{table} SET LOCATION '{before}'")
    assert refused.status is Status.REFUSED
    assert f"bound.{table} lies in {before}" in refused.message


def test_a_list_is_refused_if_a_view_replaced_a_table(spark, tmp_path):
    sql = "SELECT f.id FROM bound.fact f JOIN bound.short_lived k ON f.p = k.p"
    spark.sql("CREATE TABLE bound.short_lived USING parquet AS SELECT 2 AS p")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK)
    joined = map_join_of(first, run_job(spark, first))
    spark.sql("DROP TABLE bound.short_lived")
    spark.sql("CREATE VIEW bound.short_lived AS SELECT 1 AS p")
    refused = run_job(spark, joined)
    spark.sql("DROP VIEW bound.short_lived")
    assert refused.status is Status.REFUSED
    assert "bound.short_lived lies in " in refused.message
    assert "and is a view in the map join" in refused.message


@pytest.mark.parametrize("read", ["changing", "above"])
def test_a_descriptor_is_refused_if_a_view_was_redefined(spark, tmp_path, read):
    """The view of the statement, and one that this reads."""
    sql = f"SELECT f.id FROM bound.{read} f JOIN bound.keys k ON f.p = k.p"
    spark.sql("CREATE OR REPLACE VIEW bound.changing AS SELECT id, p FROM bound.fact")
    spark.sql("CREATE OR REPLACE VIEW bound.above AS SELECT id, p FROM bound.changing")
    first = Job(sql, str(tmp_path / "1.json"), Stages.LOCAL_TASK)
    pruned = run_job(spark, first)
    assert pruned.summary["kept"] == 1
    joined = map_join_of(first, pruned)
    assert run_job(spark, joined).status is Status.DONE
    spark.sql("CREATE OR REPLACE VIEW bound.changing AS SELECT id, p FROM unbound.fact")
    refused = run_job(spark, joined)
    assert refused.status is Status.REFUSED
    assert "the definition of bound.changing, a view, has changed" in refused.message


def test_a_list_made_for_one_application_is_refused_in_another(spark, tmp_path):
    sql = "SELECT f.id FROM bound.fact f JOIN bound.keys k ON f.p = k.p"
    both = Job(sql, str(tmp_path / "1.json"), Stages.BOTH)
    done = run_job(spark, both)
    assert done.rows == (("2",),)
    assert "also ran the join" in run_job(spark, map_join_of(both, done)).message
