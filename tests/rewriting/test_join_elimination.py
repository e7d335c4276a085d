"""Which redundant joins are removed; every key occurs once in these tests."""

from __future__ import annotations

import pytest
from sqlglot import exp

from airflow_hive_opt.rewriting.blocks import Text
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Table
from airflow_hive_opt.statement.edits import spliced
from airflow_hive_opt.statement.parse import name_span, parse
from airflow_hive_opt.statement.scan_ref import ScanRef

_DAYS = (
    Column("day", "int"),
    Column("week", "int"),
    Column("note", "string"),
    Column("info", "struct<y:int>"),
)
CATALOG = JsonCatalog.of(
    [
        Table("default.fact", (Column("id", "int"), Column("n", "int")), (Column("day", "int"),)),
        Table("default.days", _DAYS, location="/days"),
        Table("default.weeks", _DAYS),
        Table("default.plan", (Column("id", "int"),), (Column("day", "int"),), location="/plan"),
        Table("default.hours", (Column("id", "int"),), (Column("day", "int"), Column("hr", "int"))),
        Table("default.result", (Column("id", "int"),), location="/result"),
    ]
)
STAR = "FROM fact f JOIN days d ON f.day = d.day"


def left_out(sql, *joins, keys=("day",)):
    """The text, and the removed tables; a join is a scan, a table, and the conditions on it."""
    text = Text(sql, parse(sql), CATALOG)
    scans = {
        alias: ScanRef(alias, node.name, (at.start, at.stop), alias)
        for node in text.tree.find_all(exp.Table)
        if (alias := node.alias_or_name) and (at := name_span(node))
    }
    pairs = tuple((key, key) for key in keys)
    answered = [
        RedundantJoin(scans[scan], scans[table], pairs, asked)
        for scan, table, *asked in joins or [("f", "d", "d.week = 2")]
    ]
    edits, gone = eliminate_joins(text, answered, [])
    return spliced(sql, edits), [join.table.alias for join in gone]


def test_a_join_whose_table_is_not_used_is_removed():
    assert left_out(f"SELECT f.id {STAR} WHERE d.week = 2") == ("SELECT f.id FROM fact f", ["d"])


@pytest.mark.parametrize(
    "sql",
    [
        # other rows each time, and markers whose values go by their place
        f"SELECT f.id {STAR} WHERE d.week = 2 AND rand() < 0.5",
        f"SELECT f.id {STAR} WHERE d.week = 2 AND f.n > ?",
        # what stands between FROM and WHERE, or after it, and is not known
        f"SELECT f.id, x {STAR} LATERAL VIEW explode(array(1, 2)) e AS x WHERE d.week = 2",
        "SELECT f.id FROM fact f JOIN days d USING (day) WHERE d.week = 2",
        f"SELECT f.id {STAR} LEFT JOIN result r ON r.id = f.id WHERE d.week = 2",
        "SELECT f.id FROM fact f LEFT SEMI JOIN days d ON f.day = d.day AND d.week = 2",
        # the table is read
        f"SELECT * {STAR} WHERE d.week = 2",
        f"SELECT f.id, d.note {STAR} WHERE d.week = 2",
        f"SELECT f.id, note {STAR} WHERE d.week = 2",
        f"SELECT f.id, info.y {STAR} WHERE d.week = 2",
        f"SELECT f.id {STAR} WHERE d.week = 2 "
        "AND EXISTS (SELECT 1 FROM result r WHERE r.id = note)",
        f"SELECT f.id {STAR} WHERE d.week = 2 AND f.id IN (SELECT id + d.day FROM result r)",
        # conditions that the keys were not asked
        f"SELECT f.id {STAR} WHERE d.week = 2 AND d.note = 'x'",
        f"SELECT f.id {STAR} WHERE d.week = 3",
        # no equality
        "SELECT f.id FROM fact f JOIN days d ON f.day <=> d.day WHERE d.week = 2",
        "SELECT f.id FROM fact f JOIN days d WHERE d.week = 2",
        # a view may read what the statement writes
        f"INSERT INTO result SELECT f.id {STAR.replace('days', 'weeks')} WHERE d.week = 2",
    ],
)
def test_joins_that_are_not_redundant_are_kept(sql):
    assert left_out(sql) == (sql, [])


def test_a_redundant_join_of_an_insert_is_removed():
    sql = f"INSERT INTO result SELECT f.id {STAR} WHERE d.week = 2"
    assert left_out(sql) == ("INSERT INTO result SELECT f.id FROM fact f", ["d"])
    view = f"SELECT f.id {STAR.replace('days', 'weeks')} WHERE d.week = 2"
    assert left_out(view) == ("SELECT f.id FROM fact f", ["d"])


def test_a_join_is_kept_if_not_every_column_of_the_key_is_compared():
    sql = "SELECT h.id FROM hours h JOIN days d ON h.day = d.day{} WHERE d.week = 2"
    join = ("h", "d", "d.week = 2")
    both = sql.format(" AND h.week = d.week")
    assert left_out(both, join, keys=("day",)) == (both, [])
    two = sql.format("")
    assert left_out(two, join, keys=("day", "hr")) == (two, [])


def test_of_two_small_tables_that_restrict_each_other_one_is_kept():
    """``plan`` restricts ``fact``, and ``days`` restricts ``plan``."""
    sql = "SELECT f.id FROM fact f, plan p, days d WHERE f.day = p.day AND p.day = d.day"
    by_days, by_plan = ("p", "d"), ("f", "p")
    for joins in ((by_days, by_plan), (by_plan, by_days)):
        text, gone = left_out(sql, *joins)
        assert len(gone) <= 1
        assert text.count("days") + text.count("plan") >= 1
