"""Parsing: the text of conditions, and errors with their position."""

import pytest
from sqlglot import exp

from airflow_hive_opt.pruning.conditions import conjuncts
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse, span_of


def condition_texts(sql: str) -> list[str]:
    where = parse(sql).find(exp.Where)
    return [span_of(part).of(sql) for part in conjuncts(where.this)]


def test_conditions_keep_the_users_own_text():
    sql = """SELECT é.x FROM t é -- a = 1 AND b = 2
    WHERE (a  =  'b''c' AND NOT (b OR c)) AND x BETWEEN 1 AND 2
      AND CASE WHEN a=1 AND b=2 THEN 3 END = 4 AND date_add( d , 1 ) > "é" -- end"""
    assert condition_texts(sql) == [
        "a  =  'b''c'",
        "NOT (b OR c)",
        "x BETWEEN 1 AND 2",
        "CASE WHEN a=1 AND b=2 THEN 3 END = 4",
        'date_add( d , 1 ) > "é"',
    ]


@pytest.mark.parametrize(
    ("sql", "line", "column", "message"),
    [
        ("SELECT a FROM b WHERE", 1, 17, "incomplete WHERE"),
        ("SELECT a\nFROM b\nWHERE c = 'abc", 3, 11, "' is never closed"),
        ("SELECT a b c\nFROM t", 1, 12, "near 'c'"),
        ("SELECT 1; SELECT 2", 1, 18, "one SQL statement is expected, not 2"),
        ("", None, None, "expected, not 0"),
        ("CREATE TABLE x AS SELECT item FRM sales s", None, None, "can't be parsed"),
    ],
)
def test_parse_errors_have_a_line_and_a_column(sql, line, column, message):
    with pytest.raises(PlanError) as caught:
        parse(sql)
    assert caught.value.code == "PARSE"
    assert (caught.value.line, caught.value.column) == (line, column)
    assert message in str(caught.value)


def test_a_semicolon_at_the_end_is_accepted():
    assert isinstance(parse("SELECT 1;"), exp.Select)


def test_syntax_of_spark_alone_is_parsed():
    assert isinstance(parse("SELECT * FROM a LEFT ANTI JOIN b ON a.x <=> b.x"), exp.Select)
