"""Conditions outside a subquery select keys inside it, where that is sound."""

from __future__ import annotations

import pytest

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from tests.pruning.catalogs import STAR, columns

INNER = "FROM sales s JOIN days d ON s.ds = d.ds"
YEARS = f"SELECT d.year AS y, s.item AS i {INNER}"


def keys_of(sql: str, alias: str = "s") -> str:
    """The queries for the keys of one scan."""
    decision = next(found for found in plan(sql, STAR).decisions if found.scan.alias == alias)
    return " ; ".join(source.sql for source in decision.sources)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM ({YEARS}) t WHERE y = 2000",
        f"SELECT * FROM (SELECT * FROM ({YEARS}) u) t WHERE t.y = 2000",
        f"SELECT * FROM ({YEARS}) t (p, q) WHERE p = 2000",
        f"SELECT * FROM (SELECT DISTINCT d.year AS y {INNER}) t WHERE y = 2000",
        f"SELECT * FROM (SELECT d.year AS y, count(*) AS n {INNER} GROUP BY d.year) t "
        "WHERE y = 2000",
        f"SELECT * FROM ({YEARS} UNION ALL {YEARS.replace('s.', 'r.').replace(' s ', ' r ')}) t "
        "WHERE y = 2000",
        f"WITH t AS ({YEARS}) SELECT * FROM t WHERE y = 2000",
        f"SELECT * FROM items i JOIN ({YEARS}) t ON i.item = t.i AND t.y = 2000",
        f"SELECT * FROM items i LEFT JOIN ({YEARS}) t ON i.item = t.i AND t.y = 2000",
        # a window function reads whole groups of rows with the same year
        "SELECT * FROM (SELECT d.year AS y, sum(s.item) OVER (PARTITION BY d.year) AS n "
        f"{INNER}) t WHERE y = 2000",
        "SELECT * FROM (SELECT d.year AS y, count(*) AS n, "
        f"rank() OVER (PARTITION BY d.year ORDER BY count(*)) AS r {INNER} "
        "GROUP BY d.year, s.item) t WHERE y = 2000",
        # the same value through equal columns
        f"SELECT * FROM ({YEARS}) t JOIN days e ON t.y = e.year WHERE e.year = 2000",
        f"SELECT * FROM days e LEFT JOIN ({YEARS}) t ON t.y = e.year WHERE e.year = 2000",
        f"SELECT * FROM days e LEFT JOIN ({YEARS}) t ON t.y = e.year AND e.year = 2000",
        f"SELECT * FROM days e, days f, ({YEARS}) t "
        "WHERE e.year = f.year AND f.year = t.y AND e.year = 2000",
    ],
)
def test_a_condition_outside_a_subquery_selects_the_keys_inside(sql):
    assert "year` = 2000" in keys_of(sql) or "year = 2000" in keys_of(sql)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM ({YEARS} LIMIT 5) t WHERE y = 2000",
        f"SELECT * FROM (SELECT d.year AS y, row_number() OVER (ORDER BY d.ds) AS n {INNER}) t "
        "WHERE y = 2000",
        "SELECT * FROM (SELECT d.year AS y, sum(s.item) OVER (PARTITION BY d.year) AS n, "
        f"rank() OVER (ORDER BY d.ds) AS r {INNER}) t WHERE y = 2000",
        "SELECT * FROM (SELECT d.year AS y, sum(s.item) OVER (PARTITION BY d.day) AS n "
        f"{INNER}) t WHERE y = 2000",
        "SELECT * FROM (SELECT d.year AS y, sum(s.item) OVER w AS n "
        f"{INNER} WINDOW w AS (PARTITION BY d.year)) t WHERE y = 2000",
        f"SELECT * FROM (SELECT d.year AS y {INNER} "
        "QUALIFY row_number() OVER (ORDER BY d.ds) = 1) t WHERE y = 2000",
        f"SELECT * FROM (SELECT max(d.year) AS y {INNER}) t WHERE y = 2000",
        f"SELECT * FROM (SELECT d.year AS y, count(*) AS n {INNER} GROUP BY d.year WITH ROLLUP) t "
        "WHERE y = 2000",
        f"SELECT * FROM (SELECT d.year + rand() AS y {INNER}) t WHERE y = 2000",
        # UNION converts the numbers to text
        f"SELECT * FROM ({YEARS} UNION ALL SELECT i.category, 1 FROM items i) t WHERE y = '2000'",
        # above an outer join that keeps every row of the subquery
        f"SELECT * FROM ({YEARS}) t LEFT JOIN items i ON i.item = t.i AND t.y = 2000",
        f"SELECT * FROM ({YEARS}) t LEFT JOIN days e ON t.y = e.year AND e.year = 2000",
        f"SELECT * FROM days e RIGHT JOIN ({YEARS}) t ON t.y = e.year AND e.year = 2000",
        f"SELECT * FROM ({YEARS}) t FULL JOIN days e ON t.y = e.year WHERE e.year = 2000",
        # NULLs in place of the subquery's rows fulfil the condition
        f"SELECT * FROM days e LEFT JOIN ({YEARS}) t ON t.i = e.ds "
        "WHERE coalesce(t.y, 2000) = 2000",
        # another type
        f"SELECT * FROM ({YEARS}) t JOIN items i ON t.y = i.category WHERE i.category = '2000'",
    ],
)
def test_a_condition_that_would_change_rows_is_not_moved_into_the_subquery(sql):
    assert "2000" not in keys_of(sql)


@pytest.mark.parametrize(
    ("condition", "implied"),
    [
        ("(d.year = 1 AND s.item = 'a') OR (d.year = 2 AND s.item = 'b')", "d.year = 1"),
        ("(d.year = 1 AND s.item = 'a') OR d.year = 2", "d.year = 2"),
        ("(d.year = 1 AND s.item = 'a') OR s.item = 'b'", None),
        ("NOT ((d.year = 1 AND s.item = 'a') OR (d.year = 2 AND s.item = 'b'))", None),
        ("(d.year = 1 AND s.item = 'a') OR (d.year = rand() AND s.item = 'b')", None),
    ],
)
def test_an_or_implies_a_weaker_condition_on_the_keys(condition, implied):
    found = keys_of(f"SELECT * {INNER} WHERE {condition}")
    assert ("year" in found) is (implied is not None)
    assert implied is None or implied in found


def test_an_or_implies_a_weaker_condition_on_partition_columns():
    sql = (
        "SELECT * FROM sales s WHERE (s.ds = 'a' AND s.item = 'x') OR (s.ds = 'b' AND s.item = 'y')"
    )
    (decision,) = plan(sql, STAR).decisions
    assert decision.pruned
    assert [found.sql for found in decision.alternatives[0].conditions] == [
        "((s.ds = 'a')) OR ((s.ds = 'b'))"
    ]


SCALAR = "(SELECT max(e.year) FROM days e)"


@pytest.mark.parametrize(
    ("condition", "used"),
    [
        (f"d.year BETWEEN {SCALAR} AND 9", True),
        (f"d.year BETWEEN 1 AND {SCALAR}", True),
        (f"d.year BETWEEN {SCALAR} - 3 AND {SCALAR}", True),
        (f"d.year + 1 > {SCALAR} * 2", True),
        # true although the subquery gives NULL
        (f"d.year IN ({SCALAR}, 9)", False),
        (f"NOT (d.year BETWEEN {SCALAR} AND 9)", False),
        (f"coalesce({SCALAR}, 1) = d.year", False),
        # it reads the outer query
        ("d.year > (SELECT max(e.year) FROM days e WHERE e.ds = s.ds) + 1", False),
    ],
)
def test_only_some_scalar_subqueries_may_select_keys(condition, used):
    assert ("max(e.year)" in keys_of(f"SELECT * {INNER} WHERE {condition}")) is used


@pytest.mark.parametrize(
    ("function", "moves"),
    [
        ("upper(d.day)", True),
        ("posexplode(array(d.day))", False),
        ("stack(1, d.day, d.ds)", False),
        ("(json_tuple(d.day, 'a', 'b'))", False),
        ("explode(map(1, 2)) AS (k, v)", False),
        ("my_table_function(d.day)", False),
        ("my_function(d.day) AS f", True),
    ],
)
def test_a_function_that_may_return_several_columns_stops_the_condition(function, moves):
    """UNION matches columns by position, which is not known behind such a function."""
    branch = f"SELECT {function}, d.year {INNER}"
    other = branch.replace("s.", "r.").replace(" s ", " r ")
    union = f"SELECT d.day, d.year AS y {INNER} UNION ALL {other}"
    assert ("2000" in keys_of(f"SELECT * FROM ({union}) t WHERE y = 2000", "r")) is moves
    listed = f"SELECT * FROM ({branch}) t (a, y) WHERE y = 2000"
    assert ("2000" in keys_of(listed)) is moves


@pytest.mark.parametrize(
    "inside",
    ["SELECT r.rate AS y, count(*) AS n {} GROUP BY r.rate", "SELECT DISTINCT r.rate AS y {}"],
)
def test_a_condition_on_a_group_key_moves_only_if_equal_values_are_identical(inside):
    """0.0 and -0.0 are one group, but not one text; 1 and 01 are not one integer."""
    joined = inside.format("FROM sales s JOIN rates r ON s.ds = r.ds")
    for kind, moves in (("int", True), ("double", False), ("string collate UTF8_LCASE", False)):
        rates = Table("default.rates", columns(ds="string", rate=kind), total_bytes=5000)
        sales = Table("default.sales", columns(item="int"), columns(ds="string"))
        sql = f"SELECT * FROM ({joined}) t WHERE CAST(y AS STRING) = '0.0'"
        (found,) = plan(sql, JsonCatalog.of([sales, rates])).decisions
        assert ("0.0" in found.sources[0].sql) is moves
