"""The columns that a SELECT hands on: ``*`` over USING, and columns without a name."""

import pytest

from airflow_hive_opt.pruning.plan import plan
from tests.pruning.catalogs import STAR
from tests.pruning.test_partition_pruning import reasons, sources

DAYS = "JOIN days d ON q.ds = d.ds WHERE d.year = 1"
KEYS = ["SELECT DISTINCT `d`.`ds` FROM days AS `d` WHERE (d.year = 1) AND `d`.`ds` IS NOT NULL"]
LEFT = "(SELECT ds, item FROM sales) s"
RIGHT = "(SELECT item, category FROM items) i"


@pytest.mark.parametrize("kind", ["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
def test_a_star_over_using_includes_the_partition_column(kind):
    star = f"SELECT * FROM sales s {kind} JOIN items USING (item)"
    assert sources(f"SELECT 1 FROM ({star}) q {DAYS}") == KEYS
    assert sources(f"WITH q AS ({star}) SELECT 1 FROM q {DAYS}") == KEYS


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        # the other side of an inner join gets the partitions that remain
        ("", {"s": True, "r": False}),
        ("LEFT", {"s": True, "r": False}),
        ("RIGHT", {"s": False, "r": True}),
        ("FULL", {"s": False, "r": False}),
    ],
)
def test_a_using_column_belongs_to_one_side_of_an_outer_join(kind, keys):
    for listed in ("*", "ds"):
        inner = f"SELECT {listed} FROM sales s {kind} JOIN returns r USING (ds)"
        sql = f"SELECT 1 FROM ({inner}) q {DAYS}"
        found = {
            decision.scan.alias: any("days" in source.sql for source in decision.sources)
            for decision in plan(sql, STAR).decisions
        }
        assert found == keys


@pytest.mark.parametrize("column", ["a", "b", "c"])
def test_using_columns_come_first_in_a_star(column):
    star = f"SELECT * FROM {LEFT} JOIN {RIGHT} USING (item)"
    sql = f"SELECT 1 FROM ({star}) q (a, b, c) JOIN days d ON q.{column} = d.ds"
    expected = "PRUNED" if column == "b" else "NO_CONDITION_ON_PARTITION_COLUMN"
    assert reasons(sql) == {"sales": expected}
    union = f"SELECT 1 AS a, '' AS b, '' AS c UNION ALL {star}"
    other = f"SELECT 1 FROM ({star} UNION ALL SELECT item, ds, '' FROM returns) q {DAYS}"
    assert reasons(other) == {"sales": "PRUNED", "returns": "PRUNED"}
    assert reasons(f"SELECT 1 FROM ({union}) q JOIN items i ON q.b = i.category") == {
        "sales": "NO_CONDITION_ON_PARTITION_COLUMN"
    }


def test_a_using_column_of_three_tables_does_not_prune_after_a_full_join():
    found = reasons("SELECT 1 FROM sales s JOIN days d USING (ds) JOIN returns r USING (ds)")
    assert found == {"s": "PRUNED", "r": "PRUNED"}
    found = reasons("SELECT 1 FROM sales s FULL JOIN days d USING (ds) JOIN returns r USING (ds)")
    assert found["r"] == "NO_CONDITION_ON_PARTITION_COLUMN"


def test_an_unqualified_using_column_resolves_to_the_preserved_side():
    using = "SELECT 1 FROM sales s {} JOIN days d USING (ds) WHERE {}ds = '1'"
    for kind, side in (("", "s."), ("LEFT", "s."), ("RIGHT", "d."), ("LEFT SEMI", "s.")):
        found, qualified = (plan(using.format(kind, each), STAR) for each in ("", side))
        assert found.decisions[0].pruned
        assert len(found.decisions[0].sources) == len(qualified.decisions[0].sources)


def test_an_unqualified_using_column_of_a_full_join_does_not_prune():
    sql = "SELECT 1 FROM sales s FULL JOIN days d USING (ds) WHERE ds = '1'"
    assert reasons(sql) == {"s": "PRESERVED_SIDE"}


def test_an_ambiguous_unqualified_column_does_not_prune():
    sql = "SELECT 1 FROM customers c LEFT JOIN days USING (ds) JOIN sales s ON s.ds = ds"
    assert reasons(sql) == {"s": "CONDITION_NOT_SELF_CONTAINED"}


def test_a_column_of_the_inner_query_hides_a_using_column_outside():
    using = "SELECT 1 FROM sales s JOIN customers c USING (ds) WHERE EXISTS (SELECT 1 FROM {})"
    found = sources(using.format("days d WHERE ds = s.ds AND year = 1"))
    assert found == [KEYS[0].replace("d.year", "`d`.year")]


@pytest.mark.parametrize(
    "listed",
    ["ds, count(*)", "count(*), ds", "max(item), ds, 1", "ds, sum(item) OVER (PARTITION BY ds)"],
)
def test_an_unnamed_column_does_not_hide_the_partition_column(listed):
    group = "" if "OVER" in listed else " GROUP BY ds"
    inner = f"SELECT {listed} FROM sales s{group}"
    for sql in (inner, f"SELECT * FROM ({inner}) p"):
        assert sources(f"SELECT 1 FROM ({sql}) q {DAYS}") == KEYS
        assert sources(f"SELECT * FROM ({sql}) q JOIN days d USING (ds) WHERE d.year = 1") == KEYS
    union = f"SELECT 1 FROM ({inner} UNION ALL SELECT {listed} FROM returns{group}) q {DAYS}"
    assert reasons(union) == {"s": "PRUNED", "returns": "PRUNED"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT `count(1)` FROM (SELECT ds, count(*) FROM sales s GROUP BY ds) q",
        "SELECT q.`upper(ds)` FROM (SELECT ds, upper(ds) FROM sales s) q",
        "SELECT 1 FROM sales s WHERE s.ds IN "
        "(SELECT `upper(ds)` FROM (SELECT upper(ds) FROM days))",
    ],
)
def test_a_column_name_that_spark_generates_is_not_used(sql):
    assert reasons(sql).keys() == {"s"}
    assert "PRUNED" not in reasons(sql).values()


@pytest.mark.parametrize(
    "sql",
    [
        # USING takes the first column of the name
        "SELECT 1 FROM (SELECT 'x' AS ds, ds FROM sales) s JOIN days d USING (ds)",
        "SELECT 1 FROM (SELECT 'ds', ds FROM sales) s JOIN days d USING (ds)",
        "SELECT 1 FROM sales JOIN (SELECT 'x' AS ds, ds FROM days) d USING (ds)",
        "SELECT 1 FROM customers c JOIN days d ON c.ds = d.day JOIN sales USING (ds)",
        # the nearer column has the same name, which Spark makes
        "SELECT 1 FROM (SELECT ds AS `upper(ds)` FROM sales) s WHERE EXISTS "
        "(SELECT 1 FROM (SELECT upper(ds), year FROM days) d WHERE `upper(ds)` = year)",
    ],
)
def test_an_ambiguous_column_prevents_pruning(sql):
    assert "PRUNED" not in reasons(sql).values()
