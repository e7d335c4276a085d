"""The four cases of the outer-join document, and what joins above joins do to them."""

import pytest

from airflow_hive_opt.pruning.example import before_and_after
from airflow_hive_opt.pruning.rules.predicate_pushdown import push_down


def after(sql: str) -> str:
    """The tree after the rule, its lines joined by slashes."""
    tree = before_and_after(push_down, sql).partition("-->")[2]
    return " / ".join(line.strip() for line in tree.splitlines())


@pytest.mark.parametrize(
    ("join", "expected"),
    [
        (
            "LEFT JOIN src b ON a.key = b.key AND a.value > '2'",
            "JOIN LEFT OUTER ON a.key = b.key AND a.value > '2' / TS src a / TS src b",
        ),
        ("LEFT JOIN src b ON a.key = b.key AND b.value > '2'", "FIL b.value > '2' / TS src b"),
        (
            "LEFT JOIN src b ON a.key = b.key WHERE a.value > '2'",
            "FIL a.value > '2' / TS src a",
        ),
        ("LEFT JOIN src b ON a.key = b.key WHERE b.value > '2'", "FIL b.value > '2' / JOIN"),
        (
            "RIGHT JOIN src b ON a.key = b.key AND a.value > '2'",
            "FIL a.value > '2' / TS src a",
        ),
        ("RIGHT JOIN src b ON a.key = b.key WHERE a.value > '2'", "FIL a.value > '2' / JOIN"),
        (
            "FULL JOIN src b ON a.key = b.key AND a.value > '2'",
            "ON a.key = b.key AND a.value > '2'",
        ),
        ("FULL JOIN src b ON a.key = b.key WHERE a.value > '2'", "FIL a.value > '2' / JOIN"),
        (
            "LEFT SEMI JOIN src b ON a.key = b.key AND a.value > '2'",
            "FIL a.value > '2' / TS src a",
        ),
        (
            "LEFT ANTI JOIN src b ON a.key = b.key AND a.value > '2'",
            "ON a.key = b.key AND a.value > '2'",
        ),
        (
            "LEFT ANTI JOIN src b ON a.key = b.key AND b.value > '2'",
            "FIL b.value > '2' / TS src b",
        ),
        (", src b WHERE a.key = b.key AND b.value > '2'", "FIL b.value > '2' / TS src b"),
        (
            "JOIN src b ON a.key = b.key WHERE rand() > 0.5 AND a.value > '2'",
            "FIL rand() > 0.5 / JOIN",
        ),
    ],
)
def test_conditions_are_pushed_down_as_the_outer_join_document_says(join, expected):
    assert expected in after(f"SELECT a.key FROM src a {join}")


def test_a_condition_is_not_pushed_below_a_join_that_supplies_nulls():
    sql = """SELECT a.key FROM src a JOIN src b ON a.key = b.key RIGHT JOIN src c ON b.key = c.key
             WHERE a.value = '1' AND c.value = '2'"""
    tree = after(sql)
    assert "FIL a.value = '1' / JOIN RIGHT OUTER" in tree
    assert "FIL c.value = '2' / TS src c" in tree
