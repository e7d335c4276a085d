"""Python functions, which are deterministic by default: no keys come from them unless allowed."""

from __future__ import annotations

import random

import pandas as pd
import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql.functions import pandas_udf, udf
from upath import UPath

from airflow_hive_opt.restriction.restrict import restrict, ways_of
from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
from airflow_hive_opt.spark.keys.stability import stable_plan
from airflow_hive_opt.spark.map_join.prelaunch import prelaunch
from airflow_hive_opt.statement.settings import Settings
from tests.cases import slow_but
from tests.spark.answers import ask
from tests.spark.stages import job_of, prune

ALLOWED = Settings.of(switches={"python_functions": True})
HIVE_ABS = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs"
DAYS = 20


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS python_functions")
    spark.sql("USE python_functions")
    fact = spark.range(60).selectExpr("id", f"CAST(id % {DAYS} AS INT) p")
    fact.coalesce(1).write.partitionBy("p").saveAsTable("fact")
    days = spark.range(DAYS).selectExpr("CAST(id AS INT) p", "CAST(id / 5 AS INT) week")
    days.coalesce(1).write.saveAsTable("days")

    @pandas_udf("int")
    def columnar(weeks: pd.Series) -> pd.Series:
        return weeks + 1

    @pandas_udf("int")
    def largest(weeks: pd.Series) -> int:
        return int(weeks.max())

    spark.udf.register("next_week", lambda week: week + 1, "int")
    spark.udf.register("columnar", columnar)
    spark.udf.register("largest", largest)
    spark.udf.register("changing", udf(lambda week: week, "int").asNondeterministic())
    spark.udf.register("coin", lambda _: random.random() < 0.5, "boolean")
    # the planner's parser knows a function of this name in another dialect, and Spark does not
    spark.udf.register("farm_fingerprint", lambda p: p % 4, "int")
    spark.sql("CREATE TEMPORARY FUNCTION sql_next(week INT) RETURNS INT RETURN week + 1")
    spark.sql("CREATE TEMPORARY FUNCTION sql_python(w INT) RETURNS INT RETURN next_week(w) + 0")
    spark.sql(f"CREATE TEMPORARY FUNCTION hive_abs AS '{HIVE_ABS}'")
    spark.sql("CREATE TEMPORARY VIEW viewed AS SELECT p, next_week(week) AS next FROM days")
    spark.sql("CREATE TEMPORARY VIEW on_view AS SELECT p FROM viewed WHERE next = 2")
    yield
    for name in ("sql_next", "sql_python", "hive_abs"):
        spark.sql(f"DROP TEMPORARY FUNCTION {name}")
    for name in ("viewed", "on_view"):
        spark.catalog.dropTempView(name)
    spark.sql("USE default")
    spark.sql("DROP DATABASE python_functions CASCADE")


def rows_of_a_run(spark, tmp_path, sql):
    """The rows of the local task's partitions, and the scans' reasons."""
    job = job_of(sql)
    report = prune(spark, job, UPath(tmp_path) / "1.json", hand_over=False)
    descriptor = report.descriptor
    targets = prelaunch(SparkCatalog(spark), descriptor, {})
    ways = ways_of(targets, is_on_glue=False)
    reasons = [found.reason for found in descriptor.decisions]
    return spark.sql(restrict(sql, targets, ways, descriptor.row_filters)).collect(), reasons


def test_a_random_python_function_gives_no_keys(spark, tmp_path):
    """Every day has rows, so a day without one comes from other keys than the join's own."""
    sql = "SELECT d.p, f.id FROM days d LEFT JOIN fact f ON f.p = d.p WHERE coin(d.week)"
    drawn = set()
    for _ in range(3):
        for rows, reasons in (
            (spark.sql(sql).collect(), ["PYTHON_FUNCTION"]),
            rows_of_a_run(spark, tmp_path, sql),
        ):
            assert reasons == ["PYTHON_FUNCTION"]
            assert [row for row in rows if row.id is None] == []
            drawn.add(frozenset(row.p for row in rows))
    assert len(drawn) > 1, "the function is random"


IN_KEYS = {
    "condition": "days d ON f.p = d.p WHERE next_week(d.week) = 2",
    "key": "(SELECT next_week(p) - 1 AS p FROM days WHERE week = 1) d ON f.p = d.p",
    "view": "viewed d ON f.p = d.p WHERE d.next = 2",
    "view on a view": "on_view d ON f.p = d.p",
    "IN": "days d ON f.p = d.p WHERE d.p IN (SELECT p FROM viewed WHERE next = 2)",
    "scalar subquery": "days d ON f.p = d.p WHERE d.week = (SELECT min(next) FROM viewed)",
    "function of SQL": "days d ON f.p = d.p WHERE sql_python(d.week) = 2",
    "function of pandas": "days d ON f.p = d.p WHERE columnar(d.week) = 2",
    "aggregate of pandas": (
        "(SELECT p FROM days GROUP BY p HAVING largest(week) = 1) d ON f.p = d.p"
    ),
}


@pytest.mark.parametrize("name", slow_but(IN_KEYS, "condition", "view", "function of pandas"))
def test_python_functions_in_key_queries_are_used_only_if_allowed(spark, tmp_path, name):
    sql = f"SELECT f.id FROM fact f JOIN {IN_KEYS[name]}"
    answer = ask(spark, tmp_path, sql)
    assert answer.reasons == {"f": "PYTHON_FUNCTION"}
    assert len(answer.rows) == 15
    literal = sql.replace("fact f", "(SELECT * FROM fact WHERE p BETWEEN 5 AND 9) f")
    trusted = ask(spark, tmp_path, sql, literal=literal, settings=ALLOWED)
    assert (trusted.kept, trusted.rows) == ([(str(p),) for p in range(5, 10)], answer.rows)
    assert (answer.partitions_fetched, trusted.partitions_fetched) == (DAYS, 5)


@pytest.mark.parametrize("settings", [Settings.of(), ALLOWED], ids=["default", "allowed"])
def test_python_functions_in_partition_conditions_do_not_prune(spark, tmp_path, settings):
    """Spark's catalog can't evaluate it, so the setting is for keys alone."""
    sql = "SELECT f.id FROM fact f WHERE farm_fingerprint(f.p) = 1"
    answer = ask(spark, tmp_path, sql, settings=settings)
    assert (answer.reasons, len(answer.rows)) == ({"f": "CONDITION_NOT_DETERMINISTIC"}, 15)
    sql = f"{sql.replace(' WHERE', ' JOIN days d ON f.p = d.p WHERE')} AND d.week = 1"
    literal = sql.replace("fact f", "(SELECT * FROM fact WHERE p BETWEEN 5 AND 9) f")
    assert ask(spark, tmp_path, sql, literal=literal, settings=settings).target.kept == 5
    sql = (
        "SELECT x.id FROM (SELECT id, farm_fingerprint(p) AS q FROM fact) x "
        "JOIN days d ON x.q = d.p WHERE d.p = 1"
    )
    answer = ask(spark, tmp_path, sql, settings=settings)
    assert (answer.reasons, len(answer.rows)) == ({"fact": "CONDITION_NOT_DETERMINISTIC"}, 15)


@pytest.mark.parametrize("settings", [Settings.of(), ALLOWED], ids=["default", "allowed"])
def test_functions_give_keys_if_they_are_declared_deterministic(spark, tmp_path, settings):
    """Spark declares functions of SQL, and Hive's annotation others; Python's may declare too."""
    sql = "SELECT f.id FROM fact f JOIN days d ON f.p = d.p WHERE {}"
    for condition in ("sql_next(d.week) = 2", "hive_abs(d.week) = 1"):
        listed = sql.format(f"{condition} AND f.p BETWEEN 5 AND 9")
        answer = ask(spark, tmp_path, sql.format(condition), literal=listed, settings=settings)
        assert answer.target.kept == 5
    derived = "(SELECT sql_next(p) AS p FROM days WHERE week = 1) d ON f.p = d.p"
    listed = f"SELECT f.id FROM (SELECT * FROM fact WHERE p BETWEEN 6 AND 10) f JOIN {derived}"
    answer = ask(spark, tmp_path, f"SELECT f.id FROM fact f JOIN {derived}", literal=listed)
    assert answer.target.kept == 5
    answer = ask(spark, tmp_path, sql.format("changing(d.week) = 1"), settings=settings)
    assert answer.reasons == {"f": "KEY_SOURCE_NOT_DETERMINISTIC"}


def test_python_functions_are_found_with_one_jvm_call(spark, monkeypatch):
    sent: list[str] = []
    send = GatewayClient.send_command

    def counting(client, command, *rest, **named):
        sent.append(command)
        return send(client, command, *rest, **named)

    def calls(frame) -> tuple[bool, int]:
        sent.clear()
        python = stable_plan(frame).calls_python
        return python, len([each for each in sent if not each.startswith("m\nd\n")])

    monkeypatch.setattr(GatewayClient, "send_command", counting)
    plain = spark.sql("SELECT DISTINCT d.p FROM days d WHERE d.week = 1")
    assert calls(plain)[0] is False  # the first time it looks up what to ask for
    python, number = calls(plain)
    assert calls(spark.sql("SELECT p FROM viewed WHERE next = 1")) == (True, number)
    monkeypatch.setattr("airflow_hive_opt.spark.keys.stability.calls_python", lambda *_: python)
    assert calls(plain) == (False, number - 1)
