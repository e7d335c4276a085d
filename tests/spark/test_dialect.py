"""Settings that change how Spark reads a statement: it passes through, and has Spark's rows."""

from __future__ import annotations

import pytest

from airflow_hive_opt.documents.job import Job, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.dialect import why_read_differently
from airflow_hive_opt.statement.parse import has_doubled_quote


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE dialect")
    spark.sql(
        "CREATE TABLE dialect.fact (id INT) PARTITIONED BY (p INT, ds STRING) STORED AS PARQUET"
    )
    spark.sql(
        r"""INSERT INTO dialect.fact VALUES (1, 1, 'a\tb'), (2, 1, 'a\\tb'), (3, 2, '08'),
        (4, 2, "0'8"), (5, 3, 'ds'), (6, 5, 'a\tb')"""
    )
    spark.sql(
        "CREATE TABLE dialect.keys USING parquet AS SELECT * FROM VALUES "
        "(1, 'a'), (2, 'b'), (3, 'ds'), (5, 'b') AS k (p, ds)"
    )
    yield
    spark.sql("DROP DATABASE dialect CASCADE")


def both(spark, folder, settings, sql):
    session = spark.newSession()
    session.sql("USE dialect")
    for name, value in settings.items():
        session.conf.set(name, value)
    plain = session.sql(sql).collect()
    return run_job(session, Job(sql, str(folder / "1.json"), Stages.BOTH)), [
        tuple(map(str, row)) for row in plain
    ]


@pytest.mark.parametrize(
    ("setting", "value", "sql"),
    [
        ("caseSensitive", "TRUE", "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p"),
        ("path.enabled", "true", "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p"),
        (
            "ansi.doubleQuotedIdentifiers",
            "true",
            'SELECT f.id FROM fact f JOIN keys k ON f."p" = k.p AND f.ds = k."ds"',
        ),
        (
            "parser.quotedRegexColumnNames",
            "true",
            "SELECT f.`(id)?+.+` FROM fact f JOIN keys k ON f.p = k.p",
        ),
        (
            "parser.escapedStringLiterals",
            "true",
            r"SELECT f.id FROM fact f JOIN keys k ON f.p = k.p AND f.ds = 'a\tb'",
        ),
        (
            "legacy.consecutiveStringLiterals.enabled",
            "true",
            "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p AND f.ds = '0''8'",
        ),
        (
            "ansi.relationPrecedence",
            "true",
            "SELECT f.id, k.p, x.p FROM fact f, keys k JOIN keys x ON k.p = x.p AND k.p > 2 "
            "WHERE f.p = k.p",
        ),
        (
            "legacy.setopsPrecedence.enabled",
            "true",
            "SELECT f.id FROM fact f WHERE f.p IN (SELECT p FROM keys WHERE p < 2 UNION "
            "SELECT p FROM keys INTERSECT SELECT p FROM keys WHERE p > 3)",
        ),
        (
            "legacy.ctePrecedencePolicy",
            "LEGACY",
            "WITH c AS (SELECT 1 AS p) SELECT f.id FROM fact f WHERE f.p IN "
            "(WITH c AS (SELECT 2 AS p) SELECT p FROM c)",
        ),
        (
            "legacy.parser.havingWithoutGroupByAsWhere",
            "true",
            "SELECT f.id FROM fact f WHERE f.p IN (SELECT k.p FROM keys k HAVING k.p > 2)",
        ),
    ],
)
def test_a_statement_passes_through_if_a_setting_changes_how_spark_reads_it(
    spark, tmp_path, setting, value, sql
):
    name = f"spark.sql.{setting}"
    settings = {name: value}
    if setting.startswith("ansi"):
        settings["spark.sql.ansi.enabled"] = "true"
    done, plain = both(spark, tmp_path, settings, sql)
    assert done.status is Status.DONE, done.message
    assert sorted(done.rows) == sorted(plain)
    assert plain
    assert f"{name} changes how the statement is read" in done.message


@pytest.mark.parametrize(
    ("sql", "doubled"),
    [
        ("SELECT '0''8'", True),
        ('SELECT "0""8"', True),
        (r"SELECT 'a\'''b'", True),
        ("SELECT '', '''8'", True),
        ("SELECT '' = '8'", False),
        ("SELECT '0' '8'", False),
        ("SELECT '\\'' = \"\"", False),
        (r"SELECT r'\', '', '8'", False),
        ("SELECT 1 /* /* */ ''' */ = '8'", False),
        ("SELECT `''` FROM t -- it''s", False),
        ("SELECT 'never closed", False),
    ],
)
def test_doubled_quotes_are_found(sql, doubled):
    assert has_doubled_quote(sql) is doubled


def test_a_setting_that_spark_does_not_know_changes_nothing(spark, monkeypatch):
    """Before Spark 4.0, two quotes never mean one quote, whatever this setting says."""
    name = "spark.sql.legacy.consecutiveStringLiterals.enabled"
    modifiable = type(spark.conf).isModifiable
    monkeypatch.setattr(
        type(spark.conf), "isModifiable", lambda self, key: key != name and modifiable(self, key)
    )
    assert why_read_differently(spark, "SELECT '0''8'") == name
    assert why_read_differently(spark, "SELECT '08'") is None


@pytest.mark.parametrize(
    "setting",
    [
        "ansi.doubleQuotedIdentifiers",
        "parser.quotedRegexColumnNames",
        "parser.escapedStringLiterals",
        "legacy.consecutiveStringLiterals.enabled",
        "ansi.relationPrecedence",
        "legacy.setopsPrecedence.enabled",
        "legacy.parser.havingWithoutGroupByAsWhere",
    ],
)
def test_a_statement_that_a_dialect_setting_does_not_affect_is_pruned(spark, tmp_path, setting):
    sql = "SELECT f.id FROM fact f JOIN keys k ON f.p = k.p AND k.ds = 'a'"
    done, plain = both(spark, tmp_path, {f"spark.sql.{setting}": "true"}, sql)
    assert sorted(done.rows) == sorted(plain)
    assert "kept 2 of 6 partitions" in done.message
