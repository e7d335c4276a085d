"""What a rewriting must not touch, since another plan could give other rows or fail."""

from __future__ import annotations

import pytest

from airflow_hive_opt.rewriting import Refusal
from airflow_hive_opt.rewriting.broadcast_hints import with_broadcasts
from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Partition, Table
from airflow_hive_opt.statement.settings import Settings
from tests.rewriting.test_rewriting import CATALOG, LINES, ORDERS, SCALAR, outcome, reasons

JOINED = (
    "SELECT o.name, a.qty FROM orders o, lines a WHERE o.ord = a.ord AND o.name = 'x' AND {} "
    "(SELECT {} FROM lines b WHERE b.ord = a.ord)"
)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (SCALAR.replace("SELECT ord", "SELECT count(a.*)"), Refusal.SELECT_STAR),
        (SCALAR.replace("SELECT ord", "SELECT struct(*)"), Refusal.SELECT_STAR),
        (SCALAR.replace("b.ord = a.ord", "b.ord = a.ord AND b.qty > ?"), Refusal.FORM_NOT_KNOWN),
        (SCALAR.replace("avg(qty)", "avg(supp)"), Refusal.FLOATING_POINT),
        (SCALAR.replace("SELECT ord", "SELECT avg(supp)"), Refusal.FLOATING_POINT),
        (SCALAR.replace("SELECT ord", "SELECT sum(sqrt(qty))"), Refusal.FLOATING_POINT),
        (SCALAR.replace("SELECT ord", "SELECT sum(late || '')"), Refusal.FLOATING_POINT),
        (SCALAR.replace("SELECT ord", "SELECT stddev(ord)"), Refusal.ORDER_OF_ROWS),
        (
            SCALAR.replace("SELECT ord", "SELECT ord, row_number() OVER (ORDER BY part) AS n"),
            Refusal.ORDER_OF_ROWS,
        ),
        (SCALAR.replace("avg(qty)", "1 / count(qty)"), Refusal.EXPRESSION_NOT_KNOWN),
        (SCALAR.replace("avg(qty)", "max(qty) + b.part"), Refusal.EXPRESSION_NOT_KNOWN),
        (
            "SELECT x.o FROM (SELECT a.ord AS o FROM lines a) x, orders n WHERE x.o IN "
            "(SELECT ord FROM lines GROUP BY ord HAVING sum(qty) > 3 AND ord > 2)",
            Refusal.EXPRESSION_NOT_KNOWN,
        ),
        (JOINED.format("1000000 * a.supp <", "avg(qty)"), Refusal.MAY_FAIL),
        (JOINED.format("o.text_ord <", "avg(qty)"), Refusal.MAY_FAIL),
    ],
)
def test_other_plans_could_give_other_rows(sql, reason):
    assert reason in reasons(sql)


@pytest.mark.parametrize(
    "item",
    ["sum(CAST(weight AS int))", "sum(CASE WHEN weight > 0.5 THEN 1 END)", "max(weight)", "avg(1)"],
)
def test_exact_sums_do_not_stand_in_the_way(item):
    assert outcome(SCALAR.replace("SELECT ord", f"SELECT {item} AS s")).applied


def test_sums_of_keys_that_the_join_drops_must_not_overflow():
    sql = (
        "SELECT o.name, {} AS s FROM orders o, lines a WHERE a.ord = o.ord AND o.ord IN "
        "(SELECT ord FROM lines GROUP BY ord HAVING sum(qty) > 3) GROUP BY o.name"
    )
    for item in ("sum(a.supp)", "max(a.supp * 2)"):
        assert outcome(sql.format(item)).applied == ("self_join_window",)
    assert outcome(sql.format("max(a.supp)")).applied == ("aggregate_once",)


def test_a_lookup_finds_its_block_alone_so_nothing_is_asked_sooner():
    sql = "SELECT ord FROM lines a WHERE 2 * qty < (SELECT avg(qty) FROM lines b WHERE b.ord=a.ord)"
    assert outcome(sql).applied == ("self_join_window",)


def test_named_parameters_may_be_moved():
    sql = SCALAR.replace("b.ord = a.ord", "b.ord = a.ord AND b.qty > :least")
    assert "CASE WHEN (`qty` > :least) THEN" in outcome(sql).sql


def test_a_statement_that_reads_no_table_twice_looks_nothing_up():
    class Closed:
        def table(self, name):
            raise AssertionError(f"{name} is looked up")

    sql = "SELECT a.ord FROM lines a JOIN orders b ON a.ord = b.ord WHERE a.qty > 3"
    found = outcome(sql, "auto", Closed())
    assert (found.sql, found.applied, found.refused) == (sql, (), ())


def test_the_window_reads_what_the_block_or_the_lookup_asks_for():
    daily = Table(
        "default.daily",
        (Column("item", "int"), Column("amount", "int")),
        (Column("ds", "string"),),
        total_bytes=10**9,
        partitions=(Partition(("1",), 10**9), Partition(("2",), 10**9)),
    )
    catalog = JsonCatalog.of([daily])
    sql = (
        "SELECT item FROM daily f WHERE {}f.amount < "
        "(SELECT avg(amount) FROM daily g WHERE g.item = f.item{})"
    )
    either = outcome(sql.format("f.ds = '1' AND ", " AND g.ds = '2'"), "true", catalog).sql
    assert "FROM daily\n  WHERE (((`ds` = '1')) OR ((`ds` = '2')))) f" in either
    same = outcome(sql.format("f.ds = '1' AND ", " AND g.ds = '1'"), "true", catalog).sql
    assert "FROM daily\n  WHERE (`ds` = '1')) f" in same
    for one in (sql.format("f.ds = '1' AND ", ""), sql.format("", " AND g.ds = '1'")):
        assert "FROM daily) f" in outcome(one, "true", catalog).sql


def test_the_join_that_restricts_the_keys_is_made_once():
    sql = (
        "SELECT o.name, o.ord, a.supp FROM orders o, lines a WHERE o.ord = a.ord AND o.name = 'x' "
        "AND EXISTS (SELECT 1 FROM lines b WHERE b.ord = o.ord AND b.supp <> a.supp){}"
    )
    found = outcome(sql.format(""))
    assert found.applied == ("self_join_window",)
    assert found.sql.count("orders") == 1
    assert "SELECT `a`.__j0 AS `name`, `a`.`ord` AS `ord`, a.supp FROM" in found.sql
    # counts mind that a row is there twice, so the orders' keys are only asked for
    counted = outcome(sql.format(" AND 3 < (SELECT count(*) FROM lines c WHERE c.ord = o.ord)"))
    assert "IN (SELECT `o`.`ord` FROM orders AS `o` WHERE" in counted.sql
    # and so where the lookup compares with the orders' own column
    compared = outcome(
        "SELECT a.supp FROM orders o, lines a WHERE o.ord = a.ord AND o.name = 'x' AND EXISTS "
        "(SELECT 1 FROM lines b WHERE b.ord = a.ord AND b.part <> o.ord)"
    )
    assert "IN (SELECT `o`.`ord` FROM orders AS `o` WHERE" in compared.sql


def test_order_by_means_the_item_of_that_name():
    sql = (
        "SELECT{} o.name AS text_ord, a.supp FROM orders o, lines a WHERE o.ord = a.ord AND "
        "o.name = 'x' AND EXISTS (SELECT 1 FROM lines b WHERE b.ord = o.ord AND b.supp <> a.supp)"
    )
    found = outcome(f"{sql.format('')} ORDER BY upper(text_ord), o.text_ord")
    assert "AS text_ord, a.supp FROM" in found.sql
    assert found.sql.endswith("ORDER BY upper(text_ord), `a`.__j1")
    # a name in HAVING may be either, and a hint may name the table
    having = outcome(f"{sql.format('')} GROUP BY o.name, a.supp HAVING text_ord > 'a'")
    for other in (having, outcome(sql.format(" /*+ BROADCAST(o) */"))):
        assert "FROM orders o, (SELECT *," in other.sql


def test_two_reads_keep_the_join_that_holds_them_together():
    sql = (
        "SELECT a.supp FROM orders o, lines a, lines c WHERE o.ord = a.ord AND o.ord = c.ord AND "
        "o.name = 'x' AND EXISTS (SELECT 1 FROM lines b WHERE b.ord = a.ord AND b.part <> a.part)"
    )
    found = outcome(sql)
    assert "(`a`.`ord` = c.ord)" in found.sql


@pytest.mark.parametrize(
    "head", ["CREATE VIEW v AS ", "CREATE OR REPLACE TEMPORARY VIEW v AS ", "CREATE TABLE v AS "]
)
def test_the_statement_of_a_view_is_not_rewritten(head):
    found = outcome(head + SCALAR)
    assert bool(found.applied) == ("TABLE" in head)
    settings = Settings.of({"hive.auto.convert.join.noconditionaltask.size": 2 * 10**8})
    sql = f"{head}SELECT a.ord FROM lines a JOIN orders o ON a.ord = o.ord"
    assert ("BROADCAST" in with_broadcasts(sql, CATALOG, settings, 10**7)) == ("TABLE" in head)


def test_hints_for_map_joins_that_spark_would_not_make():
    settings = Settings.of({"hive.auto.convert.join.noconditionaltask.size": 2 * 10**8})
    sql = "SELECT{} a.ord FROM lines a {}JOIN orders o ON a.ord = o.ord"

    def hinted(text, threshold=10**7, chosen=settings):
        return with_broadcasts(text, CATALOG, chosen, threshold)

    hint = " /*+ BROADCAST(`o`) */"
    for kind in ("", "LEFT "):
        assert hinted(sql.format("", kind)) == sql.format(hint, kind)
    for kind in ("RIGHT ", "FULL "):
        assert hinted(sql.format("", kind)) == sql.format("", kind)
    union = "{0} UNION ALL {0} UNION ALL ({0})"
    assert hinted(union.format(sql.format("", ""))) == union.format(sql.format(hint, ""))
    shared = "WITH c AS (SELECT 1 AS a) {}"
    assert hinted(shared.format(sql.format("", ""))) == shared.format(sql.format("", ""))
    own = sql.format(" /*+ MERGE(o) */", "")
    assert hinted(own) == own
    assert hinted(sql.format("", ""), threshold=10**8) == sql.format("", "")
    assert hinted(sql.format("", ""), chosen=Settings.of()) == sql.format("", "")
    assert LINES.total_bytes > 2 * 10**8 > ORDERS.total_bytes
