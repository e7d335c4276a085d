"""Which scans the keys of a part of another large table can restrict."""

from __future__ import annotations

import pytest

from airflow_hive_opt.pruning.hops import hops
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.query import NarrowedTable
from airflow_hive_opt.statement.budget import Budget, OverBudget
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.catalogs import columns

SETTINGS = Settings.of()


def fact(name: str, indexed: tuple[str, ...]) -> Table:
    return Table(
        f"l.s.{name}",
        columns(ticket="bigint", cart="bigint", item="int", v="int", day="date"),
        total_bytes=10**9,
        provider="iceberg",
        clustered_by=("day",),
        indexed=indexed,
        partition_fields=(("day", "day"),),
    )


CATALOG = JsonCatalog.of(
    [
        fact("sales", ("ticket", "cart")),
        fact("returns", ()),
        Table("l.s.days", columns(day="date", week="int"), total_bytes=5000),
        Table("l.s.items", columns(item="int", name="string"), total_bytes=5000),
    ]
)
JOIN = (
    "SELECT s.v FROM l.s.sales s JOIN l.s.returns r ON s.ticket = r.ticket "
    "JOIN l.s.days d ON r.day = d.day WHERE d.week = 3"
)
PART = "`r`.`day` IN (DATE'2024-01-01')"


def found(sql: str, *aliases: str, settings: Settings = SETTINGS) -> dict[str, list[str]]:
    """The key queries by the scan's column, if parts of the scans ``aliases`` are read."""
    planned = plan(sql, CATALOG, settings)
    parts = [
        NarrowedTable(each.scan, PART, f"VERSION AS OF {number}")
        for number, each in enumerate(planned.decisions)
        if each.scan.alias in (aliases or ("r",))
    ]
    return {
        f"{each.scan.alias}.{', '.join(each.columns)}": [source.sql for source in each.sources]
        for each in hops(planned, parts, settings)
    }


def test_the_part_of_a_table_gives_keys_for_an_index():
    assert found(JOIN) == {
        "s.ticket": [
            "SELECT DISTINCT `r`.`ticket` FROM (SELECT * FROM l.s.returns VERSION AS OF 1 AS `r` "
            f"WHERE {PART}) AS `r` WHERE `r`.`ticket` IS NOT NULL"
        ]
    }


def test_without_parts_there_are_no_hops():
    assert found(JOIN, "d") == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s.ticket = r.ticket", "s.item = r.item"),  # no index
        ("s.ticket = r.ticket", "s.day = r.day"),  # a partition column is restricted without one
        ("s.ticket = r.ticket", "s.ticket = r.ticket + 1"),
        ("s.ticket = r.ticket", "s.ticket <=> r.ticket"),
        ("s JOIN l.s.returns", "s LEFT JOIN l.s.returns"),
        ("s JOIN l.s.returns", "s FULL JOIN l.s.returns"),
        ("l.s.returns r ON", "l.s.returns TABLESAMPLE (5 PERCENT) r ON"),
        ("l.s.sales s", "l.s.sales TABLESAMPLE (5 PERCENT) s"),
        ("l.s.returns r ON", "(SELECT * FROM l.s.returns) r ON"),
    ],
)
def test_other_joins_give_no_keys(old, new):
    assert old in JOIN
    sql = JOIN.replace(old, new)
    if "LEFT" in sql or "FULL" in sql:  # the condition on days would make them inner joins
        sql = sql.replace("JOIN l.s.days d ON r.day = d.day WHERE d.week = 3", "")
    assert found(sql) == {}


def test_keys_are_those_of_all_columns_with_an_index():
    sql = JOIN.replace("s.ticket = r.ticket", "s.ticket = r.ticket AND s.cart = r.cart")
    ((columns_, (query,)),) = found(sql).items()
    assert columns_ == "s.ticket, cart"
    assert query.startswith("SELECT DISTINCT `r`.`ticket`, `r`.`cart` FROM")


def test_small_tables_are_not_read_again():
    """Nothing holds them to the rows that the statement reads."""
    joined = JOIN.replace(" WHERE", " JOIN l.s.items i ON r.item = i.item WHERE")
    assert found(joined) == found(JOIN)
    assert found(f"{joined} AND i.name = 'a'") == found(JOIN)
    assert found(JOIN.replace("d.week = 3", "d.week > r.v")) == found(JOIN)
    assert found(f"{joined} AND s.cart = i.item") == found(JOIN)


def test_parts_that_only_a_small_table_joins_are_not_multiplied():
    sql = (
        "SELECT 1 FROM l.s.sales s JOIN l.s.returns r ON s.ticket = r.ticket "
        "JOIN l.s.days d ON r.day = d.day JOIN l.s.returns q ON q.day = d.day AND s.cart = q.cart"
    )
    ((columns_, (query,)),) = found(sql, "r", "q").items()
    assert (columns_, query.count("VERSION AS OF")) == ("s.cart", 1)


def test_conditions_on_a_part_belong_to_its_query():
    ((query,),) = found(f"{JOIN} AND r.v > 3").values()
    assert "WHERE (r.v > 3) AND" in query


def test_a_condition_that_may_change_is_not_asked():
    assert found(f"{JOIN} AND r.v > rand()") == found(JOIN)


def test_two_parts_that_are_joined_are_one_source():
    sql = JOIN.replace("JOIN l.s.days", "JOIN l.s.returns q ON q.item = r.item JOIN l.s.days")
    ((query,),) = found(sql, "r", "q").values()
    assert query.count("VERSION AS OF") == 2
    apart = JOIN.replace("JOIN l.s.days", "JOIN l.s.returns q ON q.ticket = s.ticket JOIN l.s.days")
    assert [len(each) for each in found(apart, "r", "q").values()] == [2]


def test_every_reader_of_a_cte_must_give_keys():
    with_ = "WITH x AS (SELECT * FROM l.s.sales) "
    read = "SELECT 1 FROM x s JOIN l.s.returns {0} ON s.ticket = {0}.ticket"
    assert found(f"{with_}{read.format('r')}") != {}
    assert found(f"{with_}{read.format('r')} UNION ALL SELECT 1 FROM x") == {}
    assert found(f"{with_}{read.format('r')} UNION ALL {read.format('q')}") == {}
    by_day = "SELECT 1 FROM x JOIN l.s.days e ON x.day = e.day"
    assert found(f"{with_}{read.format('r')} UNION ALL {by_day}") == {}
    both = found(f"{with_}{read.format('r')} UNION ALL {read.format('q')}", "r", "q")
    assert [len(queries) for queries in both.values()] == [2]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM l.s.sales s WHERE s.ticket IN (SELECT r.ticket FROM l.s.returns r)",
        "MERGE INTO l.s.sales s USING l.s.returns r ON s.ticket = r.ticket "
        "WHEN MATCHED THEN DELETE",
    ],
)
def test_statements_that_change_rows_have_no_hops(sql):
    assert plan(sql, CATALOG, SETTINGS).row_level is not None
    assert found(sql) == {}


def test_hops_keep_to_the_planning_budget():
    planned = plan(JOIN, CATALOG, SETTINGS)
    scan = next(each.scan for each in planned.decisions if each.scan.alias == "r")
    with pytest.raises(OverBudget), Budget(0):
        hops(planned, [NarrowedTable(scan, PART, "VERSION AS OF 1")], SETTINGS)


def test_pruning_can_be_turned_off():
    assert found(JOIN, settings=Settings.of(switches={"partition_pruning": False})) == {}
