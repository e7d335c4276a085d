"""Statements that once gave other rows than plain Spark, or failed."""

from __future__ import annotations

import pytest

from tests.cases import slow_but
from tests.spark.answers import ask


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    for statement in [
        "CREATE DATABASE IF NOT EXISTS regressions",
        "USE regressions",
        "CREATE TABLE sales (item INT, store INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        "INSERT INTO sales SELECT CAST(id % 4 AS INT), 1, concat('2020-0', id % 6 + 1) "
        "FROM range(12)",
        "CREATE TABLE days STORED AS PARQUET AS SELECT * FROM VALUES ('2020-01', 1), "
        "('2020-02', 2), ('2020-03', 3), ('2020-09', 9) AS d(ds, k)",
        "CREATE TABLE items STORED AS PARQUET AS SELECT * FROM VALUES (0, '2020-01', 1), "
        "(1, '2020-05', 2), (7, '2020-06', 7), (2, '2020-03', 77) AS i(item, ds, k)",
        "CREATE TABLE flat STORED AS PARQUET AS SELECT * FROM VALUES (50, '2020-02'), "
        "(51, '2020-99') AS f(item, ds)",
        "CREATE TABLE early (x INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        "INSERT INTO early VALUES (1, '2020-01'), (2, '2020-02')",
        "CREATE TABLE late (x INT) PARTITIONED BY (ds STRING) STORED AS PARQUET",
        "INSERT INTO late VALUES (1, '2020-05'), (2, '2020-06')",
        "CREATE TABLE structs STORED AS PARQUET AS SELECT 1 AS k, "
        "named_struct('ds', '2020-99') AS s",
        "CREATE VIEW outer_view AS SELECT i.item, s.ds FROM items i LEFT JOIN sales s "
        "ON s.item = i.item",
        "CREATE VIEW union_view AS SELECT ds, item FROM (SELECT ds, item FROM sales UNION ALL "
        "SELECT ds, item FROM flat) u",
    ]:
        spark.sql(statement)
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE regressions CASCADE")


INNER = "(SELECT i.item, s.ds FROM items i LEFT JOIN sales s ON s.item = i.item) q"
CHANGED = INNER.replace("s.ds FROM", "coalesce(s.ds, '2020-03') AS ds FROM")


STATEMENTS = {
    "two tables under one alias": [
        "SELECT s.item FROM sales s JOIN early p ON s.ds = p.ds AND p.ds > '2' UNION ALL "
        "SELECT s.item FROM sales s JOIN late p ON s.ds = p.ds AND p.ds > '2'",
    ],
    "NULLs of an outer join inside a subquery, fulfilled outside": [
        f"SELECT q.item, q.ds FROM {INNER} WHERE q.ds IS NULL",
        f"SELECT q.item, q.ds FROM {INNER} WHERE coalesce(q.ds, '2020-03') = '2020-03'",
        f"SELECT q.item, q.ds FROM {INNER} JOIN days d ON coalesce(q.ds, d.ds) = d.ds",
        f"SELECT q.item, q.ds FROM {CHANGED} JOIN days d ON q.ds = d.ds WHERE d.k = 3",
        f"WITH q AS {INNER[:-2]} SELECT q.item, q.ds FROM q WHERE q.ds <=> NULL",
    ],
    "views whose column has other values too": [
        "SELECT v.item, v.ds FROM outer_view v WHERE v.ds IS NULL",
        "SELECT v.item FROM outer_view v JOIN days d ON coalesce(v.ds, '2020-03') = d.ds",
        "SELECT v.item, v.ds FROM union_view v JOIN (SELECT '2020-99' ds UNION ALL "
        "SELECT '2020-02') d ON v.ds = d.ds",
    ],
    "a CTE's name before the CTE is defined is a table's": [
        "WITH a AS (SELECT s.item, s.ds FROM sales s JOIN days ON s.ds = days.ds), "
        "days AS (SELECT '2020-06' AS ds) SELECT * FROM a",
    ],
    "an alias that a semi join hides, taken again": [
        "SELECT s.item FROM sales s LEFT SEMI JOIN days d ON s.ds = d.ds "
        "WHERE s.item IN (SELECT d.item FROM items d)",
        "SELECT s.item FROM sales s LEFT SEMI JOIN days d ON s.ds = d.ds "
        "WHERE EXISTS (SELECT 1 FROM items d WHERE d.item = s.item)",
    ],
    "an unqualified column of a subquery whose columns are not known": [
        "WITH c AS (SELECT * FROM days) SELECT s.item, i.k FROM sales s CROSS JOIN "
        "(SELECT concat('2020-0', k) kk, k FROM items) i WHERE i.kk IN (SELECT ds FROM c) "
        "AND i.k IN (SELECT c.k FROM c)",
    ],
    "any() is an aggregate: there is always a row": [
        "SELECT s.item FROM sales s WHERE EXISTS (SELECT any(d.k = 1) FROM days d "
        "WHERE s.ds = d.ds)",
    ],
    "a star that can't be opened, in a UNION": [
        "SELECT q.a, q.ds FROM (SELECT 'k' a, days.ds, days.k b FROM days UNION ALL "
        "SELECT v.*, s.item FROM sales s JOIN (VALUES ('a', '2020-02')) v ON true) q "
        "JOIN days d ON q.ds = d.ds",
    ],
    "PIVOT and UNPIVOT replace the columns of every table in FROM": [
        "SELECT * FROM early e, (SELECT k FROM days) d "
        "PIVOT (count(x) FOR ds IN ('2020-01' AS ds)) WHERE ds > 0",
        "SELECT * FROM (SELECT ds FROM early) e CROSS JOIN (SELECT ds AS k FROM late) l "
        "UNPIVOT (v FOR n IN (ds, k)) WHERE v = '2020-05'",
        "SELECT * FROM sales s CROSS JOIN (SELECT 'q' AS k) l "
        "UNPIVOT (ds FOR n IN (s.ds, l.k)) WHERE ds = 'q'",
        "SELECT l.x FROM late l, (SELECT '2020-05' AS k, ds FROM days UNPIVOT (ds FOR n IN (ds)) "
        "WHERE ds = '2020-01') d WHERE l.ds = d.k",
    ],
    "table functions may return several columns of a UNION's branch": [
        "SELECT * FROM (SELECT posexplode(array(s.item)), d.k, s.ds FROM sales s JOIN days d "
        "ON s.ds = d.ds UNION ALL SELECT r.item, d.k, posexplode(array(r.ds)) FROM sales r "
        "JOIN days d ON r.ds = d.ds) t WHERE t.k = 0",
        "SELECT * FROM (SELECT stack(1, s.item, 'x'), s.ds, 1 AS k FROM sales s "
        "UNION ALL SELECT r.item, r.ds, stack(1, '2020-01', r.store) FROM sales r) t "
        "WHERE t.ds = '2020-01'",
    ],
    "the subquery's own struct hides the outer table of the same name": [
        "SELECT s.item FROM sales s WHERE EXISTS (SELECT 1 FROM structs i WHERE s.ds = '2020-99')",
        "SELECT s.item FROM sales s WHERE s.store IN (SELECT i.k FROM structs i "
        "WHERE s.ds = '2020-99')",
    ],
}


@pytest.mark.parametrize(
    ("about", "sql"),
    slow_but(
        [(about, sql) for about, statements in STATEMENTS.items() for sql in statements],
        *((about, statements[0]) for about, statements in STATEMENTS.items()),
    ),
)
def test_statements_that_once_failed_have_plain_sparks_rows(spark, tmp_path, about, sql):
    assert ask(spark, tmp_path, sql).rows


def test_a_fault_of_the_planner_passes_the_statement_through(spark, tmp_path, monkeypatch):
    def fault(*_):
        raise IndexError("tuple index out of range")

    monkeypatch.setattr("airflow_hive_opt.spark.application.planning.plan", fault)
    answer = ask(spark, tmp_path, "SELECT s.item FROM sales s JOIN days d ON s.ds = d.ds")
    (decision,) = answer.descriptor.decisions
    assert decision.reason == "PASSED_THROUGH"
    assert "IndexError" in decision.message
