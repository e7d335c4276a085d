"""Names in a statement are resolved, or rejected with their position."""

import pytest

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.errors import PlanError
from tests.pruning.catalogs import STAR


@pytest.mark.parametrize(
    ("sql", "line", "column", "message"),
    [
        ("SELECT * FROM nowhere", 1, 15, "there is no table nowhere"),
        ("SELECT nope FROM sales", 1, 8, "there is no column nope in sales"),
        ("SELECT s.nope FROM sales s", 1, 8, "there is no column nope in s"),
        (
            "SELECT 1\nFROM sales s JOIN days d ON s.ds = d.ds\nWHERE ds = '1'",
            3,
            7,
            "column ds is ambiguous: it is in d and in s",
        ),
        ("SELECT x.item FROM sales s", 1, 8, "there is no table or alias x here, only s"),
        ("SELECT 1 FROM sales JOIN sales", 1, 26, "two tables here are called sales"),
        ("SELECT q.nope FROM (SELECT item FROM sales) q", 1, 8, "there is no column nope in q"),
        (
            "SELECT d.ds FROM sales s LEFT SEMI JOIN days d ON s.ds = d.ds",
            1,
            8,
            "there is no table or alias d here",
        ),
        ("SELECT a FROM sales s OUTER JOIN days d ON s.ds = d.ds", 1, 34, "must be LEFT, RIGHT"),
        ("SELECT nope FROM sales JOIN (SELECT ds k FROM days)", 1, 8, "no column nope in sales"),
        ("SELECT 1 FROM sales s WHERE EXISTS (SELECT nope FROM days d)", 1, 44, "no column nope"),
    ],
)
def test_wrong_names_are_errors_with_line_and_column(sql, line, column, message):
    with pytest.raises(PlanError) as caught:
        plan(sql, STAR)
    assert caught.value.code == "SEMANTIC"
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ITEM, Sales.AMOUNT FROM Sales",
        "SELECT `item` FROM `default`.`sales`",
        "SELECT info.a, s.info.a FROM sales s",
        "SELECT amount * 2 AS twice, twice + 1 FROM sales",
        "SELECT item i, count(*) c FROM sales GROUP BY i HAVING c > 1 ORDER BY c",
        "SELECT transform(array(item), x -> x + nothing_else) FROM sales",
        "SELECT s.item FROM sales s WHERE EXISTS (SELECT 1 FROM days d WHERE d.ds = s.ds)",
        "SELECT ds FROM sales JOIN days USING (ds)",
        "SELECT c FROM sales LATERAL VIEW explode(array(1)) v AS c",
        "SELECT * FROM (VALUES (1, 2)) AS v (a, b) JOIN sales ON a = item",
        "SELECT 1",
        "WITH q AS (SELECT item FROM sales) SELECT item FROM q",
        "SELECT _metadata.file_path FROM sales",
    ],
)
def test_valid_names_are_resolved(sql):
    plan(sql, STAR)
