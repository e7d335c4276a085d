"""Decisions about Delta and Hudi tables, which keep their own list of files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_hive_opt.pruning.plan import Plan, plan
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from airflow_hive_opt.statement.settings import Settings
from tests.pruning.catalogs import columns

ORDERS = Table(
    "default.orders",
    columns(id="bigint", day="date", v="bigint"),
    total_bytes=2**63 - 1,
    provider="delta",
    clustered_by=("day",),
)
FILES = replace(ORDERS, name="default.files", provider="", clustered_by=())
CHANGED = Table("default.changed", columns(id="bigint", day="date", v="bigint"), total_bytes=5000)
JOIN = "SELECT o.v FROM orders o JOIN changed c ON o.day = c.day"
MERGE = (
    "MERGE INTO orders o USING changed c ON o.id = c.id AND o.day = c.day "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
DELETE = "DELETE FROM orders WHERE day IN (SELECT day FROM changed)"
UPDATE = "UPDATE orders SET v = 0 WHERE day IN (SELECT day FROM changed)"


def planned(sql: str, provider: str = "delta", **switches: object) -> Plan:
    tables = [replace(ORDERS, provider=provider), FILES, CHANGED]
    return plan(sql, JsonCatalog.of(tables), Settings.of(switches=switches))


def reasons(sql: str, provider: str = "delta", **switches: object) -> dict[str, str]:
    found = planned(sql, provider, **switches).decisions
    return {decision.scan.alias: decision.reason.value for decision in found}


def test_a_join_is_restricted_if_asked_for():
    assert reasons(JOIN, "hudi") == {"o": "FORMAT_NOT_TESTED"}
    assert reasons(JOIN, "hudi", untested_formats="delta") == {"o": "FORMAT_NOT_TESTED"}
    assert reasons(JOIN, "hudi", untested_formats=("delta", "hudi")) == {"o": "PRUNED"}
    (decision,) = planned(JOIN, "hudi", untested_formats="hudi").decisions
    assert decision.columns == ("day",)
    assert [source.sql for source in decision.sources] == [
        "SELECT DISTINCT `c`.`day` FROM changed AS `c` WHERE `c`.`day` IS NOT NULL"
    ]


@pytest.mark.parametrize("provider", ["iceberg", "delta"])
def test_tested_formats_need_no_setting(provider):
    assert reasons(JOIN, provider) == {"o": "PRUNED"}


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (JOIN.replace("o.day = c.day", "o.id = c.id"), "NO_CONDITION_ON_PARTITION_COLUMN"),
        (JOIN.replace("o.day = c.day", "o.day >= c.day"), "KEYS_NOT_COMPARED_AS_COLUMNS"),
        (JOIN.replace(" JOIN", " LEFT JOIN"), "PRESERVED_SIDE"),
        ("SELECT v FROM orders o WHERE day = DATE'2026-01-05'", "OWN_CONDITION"),
    ],
)
@pytest.mark.parametrize("asked", ["", "delta"])
def test_the_setting_is_named_only_if_it_changes_something(sql, reason, asked):
    assert reasons(sql, untested_formats=asked) == {"o": reason}


def test_pruning_can_be_off():
    found = reasons(JOIN, untested_formats="delta", partition_pruning=False)
    assert found == {"o": "DISABLED"}


@pytest.mark.parametrize("sql", [MERGE, DELETE, UPDATE])
def test_changes_of_rows_pass_through_unless_asked_for(sql):
    assert planned(sql, "hudi").passed_through == (
        f"{sql.split()[0]} is planned for tables of hudi only if untested_formats names it, "
        "because no test has run against them"
    )


@pytest.mark.parametrize(
    ("sql", "provider"), [(MERGE, "delta"), (MERGE, "iceberg"), (DELETE, "hudi"), (UPDATE, "hudi")]
)
def test_changes_of_rows(sql, provider):
    found = planned(sql, provider, untested_formats=provider)
    assert found.kind == sql.split()[0]
    alias = "o" if sql == MERGE else "orders"
    assert reasons(sql, provider, untested_formats=provider)[alias] == "PRUNED"


@pytest.mark.parametrize("sql", [DELETE, UPDATE])
def test_delta_refuses_subqueries(sql):
    kind = sql.split()[0]
    assert planned(sql, "delta").passed_through == (
        f"Delta accepts no subquery in {kind}, so no other table gives keys"
    )


def test_hudis_merge_passes_through():
    found = planned(MERGE, "hudi", untested_formats="hudi")
    assert found.passed_through == (
        "Hudi accepts only equalities in MERGE's ON, so no keys can be added there"
    )


def test_a_target_of_another_format():
    sql = MERGE.replace("orders", "files")
    assert planned(sql).passed_through == "MERGE is planned for tables of iceberg, delta, hudi only"


@pytest.mark.parametrize(("asked", "expected"), [("", ["v"]), ("hudi", [])])
def test_keys_of_data_columns_stay_as_they_are_without_the_setting(asked, expected):
    sql = "SELECT o.id FROM orders o JOIN changed c ON o.v = c.v"
    found = planned(sql, "hudi", key_predicate=True, untested_formats=asked).predicates
    assert [predicate.column for predicate in found] == expected
