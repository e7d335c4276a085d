"""Correlated queries rewritten for Spark: what is refused, and why."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from airflow_hive_opt.explain.plan_text import explain, explanation_to_json, explanation_to_text
from airflow_hive_opt.rewriting import Refusal, query_of, rewrite
from airflow_hive_opt.statement.catalog import Buckets, Column, JsonCatalog, Partition, Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings

LINES = Table(
    "default.lines",
    (
        Column("ord", "bigint"),
        Column("part", "bigint"),
        Column("supp", "bigint"),
        Column("qty", "decimal(15,2)"),
        Column("weight", "double"),
        Column("late", "boolean"),
    ),
    total_bytes=10**9,
    distinct=(("ord", 10**7),),
)
ORDERS = Table(
    "default.orders",
    (Column("ord", "bigint"), Column("name", "string"), Column("text_ord", "string")),
    total_bytes=10**8,
)
DAILY = Table(
    "default.daily",
    (Column("item", "int"), Column("amount", "int")),
    (Column("ds", "string"),),
    total_bytes=10**9,
    partitions=(Partition(("2020-01-01",), 10**9),),
)
DAYS = Table("default.days", (Column("ds", "string"), Column("year", "int")), total_bytes=10**4)
CATALOG = JsonCatalog.of([LINES, ORDERS, DAILY, DAYS])
SCALAR = "SELECT ord FROM lines a WHERE qty < (SELECT avg(qty) FROM lines b WHERE b.ord = a.ord)"
EXISTS = "SELECT ord FROM lines a WHERE EXISTS (SELECT 1 FROM lines b WHERE b.ord = a.ord AND {})"


def outcome(sql, mode="true", catalog=CATALOG):
    return rewrite(sql, catalog, Settings.of({"hive.optimize.correlation": mode}))


def reasons(sql, mode="true", catalog=CATALOG):
    found = outcome(sql, mode, catalog)
    assert found.applied == ()
    assert found.sql == sql
    return {reason for _, reason in found.refused}


def test_the_rewriting_is_off_by_default_as_in_hive():
    assert rewrite(SCALAR, CATALOG, Settings.of()).refused == (("*", Refusal.OFF),)


def test_a_scalar_subquery_becomes_a_window():
    found = outcome(SCALAR, "auto")
    assert found.applied == ("self_join_window",)
    assert found.sql.count("lines") == 1


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (SCALAR.replace("avg(qty)", "avg(weight)"), Refusal.FLOATING_POINT),
        (SCALAR.replace("SELECT ord", "SELECT *"), Refusal.SELECT_STAR),
        (SCALAR.replace("SELECT ord", "SELECT rand()"), Refusal.NOT_DETERMINISTIC),
        (SCALAR + " LIMIT 3", Refusal.NOT_DETERMINISTIC),
        (SCALAR.replace("b.ord = a.ord", "b.weight = a.weight"), Refusal.KEY_TYPE),
        (SCALAR.replace("b.ord = a.ord", "b.ord = a.part"), Refusal.NO_SHARED_KEY),
        (
            SCALAR.replace("b.ord = a.ord", "b.ord = a.ord AND f(b.qty)"),
            Refusal.EXPRESSION_NOT_KNOWN,
        ),
        (
            "SELECT o.name FROM orders o LEFT JOIN lines a ON a.ord = o.ord "
            "WHERE a.qty < (SELECT avg(qty) FROM lines b WHERE b.ord = a.ord)",
            Refusal.NULL_SUPPLYING_SIDE,
        ),
    ],
)
def test_statements_that_are_not_rewritten_have_a_reason(sql, reason):
    assert reason in reasons(sql)


def test_aggregates_over_rows_with_different_filters_are_not_shared():
    sql = (
        "SELECT o.name, sum(a.qty) AS s FROM orders o, lines a WHERE a.ord = o.ord AND o.ord IN "
        "(SELECT ord FROM lines{} GROUP BY ord) GROUP BY o.name"
    )
    assert outcome(sql.format("")).applied == ("aggregate_once",)
    assert outcome(sql.format(" WHERE late")).applied == ("self_join_window",)
    both = sql.format(" WHERE late").replace("a.ord = o.ord", "a.ord = o.ord AND a.late")
    assert outcome(both).applied == ("aggregate_once",)


def test_a_correlation_key_of_another_type_prevents_the_rewriting():
    sql = "SELECT o.name FROM orders o, lines a WHERE o.text_ord = a.ord AND a.qty < {}"
    inner = "(SELECT avg(qty) FROM lines b WHERE b.ord = o.text_ord)"
    assert reasons(sql.format(inner)) == {Refusal.KEY_TYPE}


def test_a_null_correlation_key_counts_no_rows():
    counted = SCALAR.replace("avg(qty)", "count(*)")
    assert "CASE WHEN `a`.`ord` IS NOT NULL THEN `a`.`__w0` ELSE 0 END" in outcome(counted).sql


@pytest.mark.parametrize(
    ("comparison", "windows"),
    [
        ("b.supp <> a.supp", ["min", "max"]),
        ("a.supp > b.supp", ["min"]),
        ("b.supp >= a.supp", ["max"]),
        ("b.late", ["max"]),
    ],
)
def test_exists_with_a_comparison_becomes_windows_with_min_and_max(comparison, windows):
    sql = outcome(EXISTS.format(comparison)).sql
    assert [line.split("(")[0].strip() for line in sql.splitlines() if " OVER " in line] == windows


def test_auto_does_not_rewrite_small_tables_or_tables_of_unknown_size():
    for size, reason in (
        (10**6, Refusal.TABLE_SMALL),
        (None, Refusal.SIZE_NOT_KNOWN),
        (2**63 - 1, Refusal.SIZE_NOT_KNOWN),
    ):
        catalog = JsonCatalog.of([replace(LINES, total_bytes=size), ORDERS])
        assert reasons(SCALAR, "auto", catalog) == {reason}
        assert outcome(SCALAR, "true", catalog).applied == ("self_join_window",)


def test_auto_uses_statistics_to_tell_whether_an_aggregate_is_small():
    for distinct in ((), (("ord", 100_000),), (("part", 10**7),)):
        catalog = JsonCatalog.of([replace(LINES, distinct=distinct), ORDERS])
        assert reasons(SCALAR, "auto", catalog) == {Refusal.NOT_EXPECTED_TO_WIN}
        assert outcome(EXISTS.format("b.supp <> a.supp"), "auto", catalog).applied
        late = EXISTS.format("b.supp <> a.supp") + " AND late"
        assert reasons(late, "auto", catalog) == {Refusal.NOT_EXPECTED_TO_WIN}
    few = (
        "SELECT a.qty FROM lines a, orders o WHERE a.ord = o.ord AND {} AND "
        "a.qty < (SELECT avg(qty) FROM lines b WHERE b.ord = a.ord)"
    )
    assert outcome(few.format("o.name = 'x'"), "auto").applied == ("self_join_window",)
    unknown = JsonCatalog.of([replace(LINES, distinct=()), ORDERS])
    assert reasons(few.format("o.name = 'x'"), "auto", unknown) == {Refusal.NOT_EXPECTED_TO_WIN}
    very_few = few.format("o.name = 'x' AND o.text_ord = 'y'")
    assert outcome(very_few, "auto", unknown).applied == ("self_join_window",)
    assert reasons(few.format("o.name > 'x'"), "auto") == {Refusal.NOT_EXPECTED_TO_WIN}


def test_auto_shares_no_scan_of_a_table_that_spark_does_not_shuffle():
    sql = (
        "SELECT a.ord, b.qty FROM (SELECT ord, count(DISTINCT part) AS n FROM lines GROUP BY ord) "
        "a, (SELECT ord, count(DISTINCT supp) AS n FROM lines GROUP BY ord) c, lines b "
        "WHERE a.ord = b.ord AND c.ord = b.ord"
    )
    assert outcome(sql, "auto").applied == ("shared_scan",)
    for by_spark, applied in ((True, ()), (False, ("shared_scan",))):
        table = replace(LINES, buckets=Buckets(("ord",), 4, by_spark=by_spark))
        assert outcome(sql, "auto", JsonCatalog.of([table, ORDERS])).applied == applied


def test_auto_does_not_rewrite_the_click_stream_query():
    sql = """SELECT c.ord FROM lines c, (SELECT c1.ord, min(c2.qty) AS q FROM lines c1, lines c2
      WHERE c1.ord = c2.ord AND c1.part = 3 AND c2.part = 7 GROUP BY c1.ord) m
      WHERE c.ord = m.ord AND c.qty > m.q"""
    assert Refusal.NOT_EXPECTED_TO_WIN in reasons(sql, "auto")


def test_a_rewriting_that_would_lose_pruning_is_refused():
    sql = (
        "SELECT f.item FROM daily f JOIN days d ON f.ds = d.ds WHERE d.year = 2020 AND "
        "f.amount < (SELECT avg(amount) FROM daily g WHERE g.item = f.item)"
    )
    assert Refusal.PRUNING_WOULD_BE_LOST in reasons(sql)
    static = sql.replace("JOIN days d ON f.ds = d.ds WHERE d.year = 2020", "WHERE f.ds = '2020'")
    assert outcome(static).applied == ("self_join_window",)


def test_new_column_names_do_not_collide_with_names_of_the_statement():
    found = outcome(SCALAR.replace("SELECT ord", "SELECT ord AS __w0"))
    assert "AS ___w0" in found.sql


def test_the_query_of_an_insert_is_rewritten():
    assert query_of("INSERT INTO t SELECT 1 AS a") == "SELECT 1 AS a"
    assert query_of("SELECT 1") == "SELECT 1"
    found = outcome(f"INSERT OVERWRITE TABLE orders {SCALAR}")
    assert found.applied == ("self_join_window",)


def test_explain_lists_rewritings_and_refusals():
    sql = EXISTS.format("b.supp <> a.supp").replace("SELECT ord", "SELECT a.ord")
    loose = {"hive.optimize.correlation": "true", "hive.auto.convert.join": "false"}
    with pytest.raises(PlanError):  # Hive takes no comparison between the two
        explain(sql, CATALOG, loose)
    sql = EXISTS.format("b.late").replace("SELECT ord", "SELECT a.ord")
    done = explain(sql, CATALOG, loose)
    assert explanation_to_json(done)["rewriting"]["applied"] == ["self_join_window"]
    assert "Spark: self_join_window" in explanation_to_text(done)
    assert "Spark: scans: 2; rewritten, scans: 1" in explanation_to_text(done)
    alone = explanation_to_text(explain("SELECT ord FROM lines", CATALOG))
    assert "no two parts of the statement read one table by one key" in alone
    left = explain(sql.replace("SELECT a.ord", "SELECT *"), CATALOG, loose)
    assert "SELECT_STAR" in explanation_to_text(left)
    assert json.dumps(explanation_to_json(left)["rewriting"])


@pytest.mark.parametrize("key", ["abs(ord)", "1", "ord + 1"])
def test_a_scan_is_not_shared_by_a_group_key_that_is_no_column(key):
    """``DISTRIBUTE BY`` would name a column that is not there."""
    sql = (
        "SELECT x.m, y.n FROM (SELECT count(DISTINCT part) AS n FROM lines GROUP BY {0}) y, "
        "(SELECT count(DISTINCT supp) AS m FROM lines GROUP BY {0}) x"
    )
    assert outcome(sql.format("ord")).applied == ("shared_scan",)
    assert outcome(sql.format(key)).applied == ()
