"""The tables that a statement names, from its text alone."""

from __future__ import annotations

import pytest

from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import may_insert, tables_of


@pytest.mark.parametrize(
    ("sql", "reads", "writes"),
    [
        ("SELECT * FROM `T` x JOIN a.b.c y", ["a.b.c", "default.t"], []),
        ("FROM t INSERT OVERWRITE TABLE o SELECT a INSERT INTO p SELECT b", ["t"], ["o", "p"]),
        ("CREATE TABLE z STORED AS PARQUET AS SELECT 1 FROM q", ["q"], ["z"]),
        ("INSERT INTO r (a, b) SELECT a, b FROM r", ["r"], ["r"]),
        ("INSERT INTO r PARTITION (ds = 'x') SELECT 1 FROM q", ["q"], ["r"]),
        ("INSERT OVERWRITE DIRECTORY '/x' SELECT * FROM t", ["t"], []),
        ("SELECT * FROM range(3) JOIN (VALUES (1)) v", [], []),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u)", ["t", "u"], []),
        ("SELECT 1 FROM t LATERAL VIEW explode(a) e AS x", ["t"], []),
        ("SET a=b; SELECT 1 FROM t", ["t"], []),
        # a CTE hides a table from where it is defined on, not in itself
        ("WITH t AS (SELECT 1 FROM t) SELECT 1 FROM t", ["t"], []),
        ("WITH a AS (SELECT 1 FROM b), b AS (SELECT 1 FROM a) SELECT 1 FROM b", ["b"], []),
        ("WITH a AS (SELECT 1) SELECT 1 FROM a JOIN (SELECT 1 FROM A) s", [], []),
        ("WITH a AS (SELECT 1) SELECT 1 FROM d.a", ["d.a"], []),
        ("SELECT 1 FROM (WITH a AS (SELECT 1) SELECT 1 FROM a) s JOIN a", ["a"], []),
    ],
)
def test_the_tables_that_a_statement_reads_and_writes_are_found(sql, reads, writes):
    def named(names):
        return tuple(name if "." in name else f"default.{name}" for name in names)

    found = tables_of(sql)
    assert (found.reads, found.writes) == (named(reads), named(writes))


def test_text_that_is_not_sql_is_an_error():
    with pytest.raises(PlanError):
        tables_of("SELECT FROM WHERE (")


@pytest.mark.parametrize("statement", ["INSERT/* all */INTO r SELECT 1", "MERGE INTO r USING s"])
def test_many_comments_before_a_statement_are_skipped_in_linear_time(statement):
    banner = "/* line ** / */ -- a -- b\n" * 2_000
    assert may_insert(banner + statement + banner) is statement.startswith("INSERT")
