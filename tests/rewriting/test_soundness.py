"""Rules of soundness, each stated by a statement that gives wrong rows without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.pruning.example import surviving
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.rewriting import Refusal
from airflow_hive_opt.rewriting.blocks import Text
from airflow_hive_opt.rewriting.example import CATALOG as EXAMPLE
from airflow_hive_opt.rewriting.example import without_join
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.statement.catalog import JsonCatalog, ViewDefinition
from airflow_hive_opt.statement.edits import spliced
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.scan_ref import ScanRef
from tests.pruning.catalogs import STAR
from tests.rewriting.test_rewriting import outcome, reasons


def decision(sql: str, alias: str):
    return next(found for found in plan(sql, STAR).decisions if found.scan.alias == alias)


@pytest.mark.parametrize(
    ("from_", "seen"),
    [
        ("days d FULL JOIN sales s ON s.ds = d.ds", "dropped, PRESERVED_SIDE: s.ds = d.ds"),
        (
            "sales s LEFT JOIN days d ON d.year = 2000 WHERE s.ds <=> d.ds",
            "dropped, PRESERVED_SIDE: d.year = 2000\ndropped, NULLS_MAY_MATCH: s.ds <=> d.ds",
        ),
        (
            "sales s LEFT JOIN days d ON s.ds = d.ds WHERE s.item IN (d.year, '5')",
            "dropped, PRESERVED_SIDE: s.ds = d.ds\n"
            "dropped, NULLS_MAY_MATCH: s.item IN (d.year, '5')",
        ),
    ],
)
def test_conditions_that_null_supplied_rows_may_fulfil_are_dropped(from_, seen):
    assert surviving(from_, "s") == seen


def test_an_or_that_nulls_may_fulfil_gives_no_keys():
    found = decision(
        "SELECT 1 FROM sales s LEFT JOIN days d ON s.ds = d.ds "
        "WHERE (s.ds = 'x' AND s.item = 1) OR (d.year = 2 AND s.ds = 'y' AND s.item = 2)",
        "s",
    )
    assert found.sources == ()
    assert [condition.sql for condition in found.alternatives[0].conditions] == [
        "((s.ds = 'x')) OR ((s.ds = 'y'))"
    ]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("q.y = 2000", "PRUNED"),
        ("q.filled = 2000", "PRESERVED_SIDE"),
        ("(q.y = 1 AND i.category = 'a') OR (q.item = 2 AND i.category = 'b')", "PRESERVED_SIDE"),
    ],
)
def test_a_condition_on_a_subquery_prunes_unless_nulls_may_fulfil_it(condition, reason):
    inner = (
        "SELECT s.item, d.year AS y, coalesce(d.year, 2000) AS filled "
        "FROM sales s LEFT JOIN days d ON s.ds = d.ds"
    )
    sql = f"SELECT 1 FROM ({inner}) q JOIN items i ON i.item = q.item WHERE {condition}"
    assert decision(sql, "s").reason == reason


OUTER = "days d LEFT JOIN sales s ON s.item = d.year"


@pytest.mark.parametrize(
    "inner",
    [
        # NULLs that the outer join puts in place of the partition
        f"(SELECT s.ds AS x FROM {OUTER}) t JOIN days e ON t.x <=> e.ds",
        f"(SELECT coalesce(s.ds, 'a') AS x FROM {OUTER}) t JOIN days e ON t.x = e.ds",
        f"(SELECT coalesce(u.y, 'a') AS x FROM (SELECT s.ds AS y FROM {OUTER}) u) t "
        "JOIN days e ON t.x = e.ds",
        # of two relations' columns one is the partition's
        "(SELECT concat(s.ds, d.ds) AS x FROM sales s JOIN days d ON s.item = d.year) t "
        "JOIN days e ON t.x = e.ds",
        # LIMIT chooses its rows before
        "((SELECT s.ds AS x FROM sales s LIMIT 3) UNION ALL (SELECT ds FROM returns)) t "
        "JOIN days e ON t.x = e.ds",
        # an aggregate beside the group's key
        "(SELECT concat(s.ds, max(s.item)) AS x FROM sales s GROUP BY s.ds) t "
        "JOIN days e ON t.x = e.ds",
        "(SELECT concat(s.hr, s.ds) AS x, count(*) FROM returns s GROUP BY s.ds) t "
        "JOIN days e ON t.x = e.ds",
    ],
)
def test_a_value_that_is_not_the_partition_column_is_not_pruned(inner):
    assert not decision(f"SELECT 1 FROM {inner}", "s").pruned


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT s.ds FROM {OUTER}",
        "SELECT t.ds FROM (SELECT ds FROM sales UNION ALL SELECT ds FROM customers) t",
    ],
)
def test_a_view_that_changes_its_tables_rows_is_not_pruned(query):
    view = replace(
        STAR.table("days"),
        name="default.seen",
        columns=STAR.table("customers").columns,
        definition=ViewDefinition(query, "default", ("ds",)),
    )
    names = ("sales", "days", "customers")
    catalog = JsonCatalog.of([view, *(STAR.table(name) for name in names)])
    found = plan("SELECT 1 FROM seen v JOIN days e ON v.ds = e.ds", catalog).decisions
    assert [each for each in found if each.pruned] == []


def test_keys_from_partition_names_use_no_data_column():
    (source,) = decision(
        "SELECT 1 FROM sales s JOIN returns r ON s.ds = r.ds AND r.item = 3", "s"
    ).sources
    assert "item" not in source.sql


def test_a_null_key_matches_null_safely():
    (source,) = decision("SELECT 1 FROM sales s JOIN days d ON s.ds <=> d.ds", "s").sources
    assert "IS NOT NULL" not in source.sql


@pytest.mark.parametrize(
    ("joined", "alias"),
    [
        ("sales s JOIN days d ON s.ds >= d.ds", "s"),
        ("sales s JOIN days d ON s.ds <=> d.ds", "s"),
        ("sales s WHERE s.ds > (SELECT max(ds) FROM days)", "s"),
        ("sales s JOIN items i ON s.ds = i.item", "s"),
        ("returns r JOIN days d ON r.ds = d.ds AND r.hr + 0 = d.year", "r"),
    ],
)
def test_conditions_that_the_metastore_compares_differently_are_not_for_it(joined, alias):
    (source,) = decision(f"SELECT 1 FROM {joined}", alias).sources
    assert source.partition_columns == ()


@pytest.mark.parametrize(
    "subquery",
    [
        "LATERAL (SELECT ds FROM days d WHERE d.year = s.item) t",
        "(SELECT ds FROM days WHERE year = ?) t",  # whose value is known by its place
    ],
)
def test_a_subquery_that_can_not_run_alone_gives_no_keys(subquery):
    assert not decision(f"SELECT 1 FROM sales s, {subquery} WHERE s.ds = t.ds", "s").pruned


JOINED = "FROM facts f JOIN days d ON f.day = d.day WHERE d.year = 2000"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT f.item, rand() {JOINED}",
        f"SELECT * {JOINED}",
        f"SELECT f.item, d.year {JOINED}",
        f"SELECT f.item, year {JOINED}",
        f"SELECT f.item, year.part {JOINED}",
        f"SELECT f.item {JOINED} ORDER BY year",
        f"SELECT f.item {JOINED} AND d.day > '2'",
        f"INSERT INTO other SELECT f.item {JOINED}",  # days has no location: a view
        "SELECT f.item FROM facts f, days d WHERE d.year = 2000",
        "SELECT i.item FROM facts f JOIN days d ON f.day = d.day "
        "RIGHT JOIN items i ON i.item = f.item WHERE d.year = 2000",
        "SELECT f.item FROM facts f LEFT JOIN days d ON f.day = d.day",
        "SELECT i.item FROM facts f, days d RIGHT JOIN items i ON i.item = 5 "
        "WHERE f.day = d.day AND d.year = 2000",
    ],
)
def test_a_join_that_is_not_redundant_is_kept(sql):
    assert without_join(sql, asked="d.year = 2000") == sql


def test_only_one_of_two_chained_redundant_joins_is_removed():
    sql = "SELECT f.item FROM facts f, days d, days e WHERE f.day = d.day AND d.day = e.day"
    text = Text(sql, parse(sql), EXAMPLE)
    (block,) = text.blocks()
    scans = {
        alias: ScanRef(alias, "default.days", (at.start, at.stop), alias)
        for alias, factor in block.factors.items()
        if (at := factor.reference)
    }
    key = (("day", "day"),)
    chain = [
        RedundantJoin(scans["f"], scans["d"], key, ()),
        RedundantJoin(scans["d"], scans["e"], key, ()),
    ]
    for answered in (chain, chain[::-1]):
        edits, left_out = eliminate_joins(text, answered, [])
        assert len(left_out) == 1
        assert spliced(sql, edits).count("days") == 1


def test_not_exists_treats_null_as_no_match():
    exists = (
        "SELECT ord FROM lines a WHERE NOT EXISTS (SELECT 1 FROM lines b WHERE b.ord = a.ord {})"
    )
    assert "NOT coalesce(" in outcome(exists.format("AND b.supp <> a.supp")).sql


def test_exists_with_greater_becomes_a_window_with_max():
    sql = "SELECT ord FROM lines a WHERE EXISTS (SELECT 1 FROM lines b WHERE b.ord = a.ord AND {})"
    greater = outcome(sql.format("b.supp > a.supp")).sql
    assert "max(`supp`) OVER" in greater
    assert "min(" not in greater


def test_a_derived_table_needs_a_row_that_passes():
    sql = (
        "SELECT a.ord FROM lines a JOIN (SELECT ord, sum(qty) AS s FROM lines WHERE late "
        "GROUP BY ord) g ON g.ord = a.ord WHERE a.qty < g.s"
    )
    assert "max(CASE WHEN (`late`) THEN 1 END) OVER" in outcome(sql).sql


def test_keys_that_are_equal_only_by_a_cast_are_not_shared():
    sql = (
        "SELECT o.name FROM orders o, orders p, lines a WHERE o.ord = p.text_ord "
        "AND p.text_ord = a.ord AND a.qty < (SELECT avg(qty) FROM lines b WHERE b.ord = o.ord)"
    )
    assert reasons(sql) == {Refusal.NO_SHARED_KEY}


ONCE = (
    "SELECT o.name, {} FROM orders o JOIN lines a ON a.ord = o.ord {} "
    "WHERE o.ord IN (SELECT ord FROM lines GROUP BY ord) GROUP BY o.name{}"
)


@pytest.mark.parametrize(
    ("given", "joined", "group"),
    [
        ("sum(a.qty) AS s", "LEFT JOIN orders p ON p.ord = o.ord", ""),
        ("a.part, sum(a.qty) AS s", "", ", a.part"),
        ("sum(a.qty) AS s, sum(o.ord) AS t", "", ""),
        ("sum(a.qty) AS s", "", " ORDER BY a.part"),
    ],
)
def test_unsuitable_aggregates_are_not_computed_before_the_join(given, joined, group):
    assert "aggregate_once" not in outcome(ONCE.format(given, joined, group)).applied


def test_a_count_becomes_the_sum_of_the_counts_of_each_key():
    found = outcome(ONCE.format("count(*) AS n", "", ""))
    assert found.applied == ("aggregate_once",)
    assert "sum(`a`.`__s0`)" in found.sql


def test_aggregates_over_different_rows_are_not_merged():
    sql = (
        "SELECT a.ord, a.s, b.m FROM (SELECT ord, sum(qty) AS s FROM lines WHERE late "
        "GROUP BY ord) a JOIN (SELECT ord, max(qty) AS m FROM lines WHERE part = 1 GROUP BY ord) b "
        "ON a.ord = b.ord"
    )
    assert "merged_aggregates" not in outcome(sql).applied


def test_an_expression_that_may_fail_is_not_evaluated_for_more_rows():
    asked = "a.supp * 1000000 > 5"
    sql = (
        f"SELECT o.name FROM orders o, lines a WHERE o.ord = a.ord AND o.name = 'x' AND {asked} "
        "AND EXISTS (SELECT 1 FROM lines b WHERE b.ord = a.ord AND b.supp <> a.supp "
        "AND b.part = 1)"
    )
    found = outcome(sql)
    assert found.applied
    assert found.sql.count("1000000") == 1


def test_sums_are_not_moved_above_a_join_that_repeats_rows():
    sql = (
        "SELECT o.name FROM orders o, lines a WHERE o.ord = a.ord AND o.name = 'x' AND a.qty < "
        "(SELECT avg(qty) FROM lines b WHERE b.ord = a.ord)"
    )
    found = outcome(sql)
    assert found.applied
    assert "__j" not in found.sql
