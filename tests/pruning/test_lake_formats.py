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


PROVIDERS = pytest.mark.parametrize("provider", ["iceberg", "delta", "hudi"])


@PROVIDERS
def test_a_join_with_a_lake_table_is_restricted_to_its_keys(provider):
    assert reasons(JOIN, provider) == {"o": "PRUNED"}
    (decision,) = planned(JOIN, provider).decisions
    assert decision.columns == ("day",)
    assert [source.sql for source in decision.sources] == [
        "SELECT DISTINCT `c`.`day` FROM changed AS `c` WHERE `c`.`day` IS NOT NULL"
    ]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (JOIN.replace("o.day = c.day", "o.id = c.id"), "NO_CONDITION_ON_PARTITION_COLUMN"),
        (JOIN.replace("o.day = c.day", "o.day >= c.day"), "KEYS_NOT_COMPARED_AS_COLUMNS"),
        (JOIN.replace(" JOIN", " LEFT JOIN"), "PRESERVED_SIDE"),
        ("SELECT v FROM orders o WHERE day = DATE'2026-01-05'", "OWN_CONDITION"),
    ],
)
@PROVIDERS
def test_lake_tables_that_are_not_restricted_have_a_reason(sql, reason, provider):
    assert reasons(sql, provider) == {"o": reason}


def test_lake_tables_are_not_restricted_if_pruning_is_off():
    assert reasons(JOIN, partition_pruning=False) == {"o": "DISABLED"}


@pytest.mark.parametrize(
    ("sql", "provider"),
    [(MERGE, "iceberg"), (MERGE, "delta"), (DELETE, "iceberg"), (DELETE, "hudi"), (UPDATE, "hudi")],
)
def test_merge_update_and_delete_on_lake_tables_are_restricted(sql, provider):
    assert planned(sql, provider).kind == sql.split()[0]
    assert reasons(sql, provider)["o" if sql == MERGE else "orders"] == "PRUNED"


@pytest.mark.parametrize(
    ("sql", "provider", "why"),
    [
        (MERGE, "hudi", "Hudi finds a MERGE's rows by record key"),
        (UPDATE, "delta", "Delta accepts no subquery in UPDATE"),
        (DELETE, "delta", "Delta accepts no subquery in DELETE"),
    ],
)
def test_merge_update_and_delete_that_can_not_be_planned_pass_through(sql, provider, why):
    assert why in planned(sql, provider).passed_through


def test_a_merge_into_a_table_of_another_format_passes_through():
    sql = MERGE.replace("orders", "files")
    assert planned(sql).passed_through == "MERGE is planned for tables of iceberg, delta, hudi only"


@pytest.mark.parametrize("provider", ["delta", "hudi"])
def test_keys_of_data_columns_alone_do_not_restrict_a_lake_table(provider):
    sql = "SELECT o.id FROM orders o JOIN changed c ON o.v = c.v"
    found = planned(sql, provider, key_predicate=True)
    assert found.predicates == ()
    assert reasons(sql, provider, key_predicate=True) == {"o": "NO_CONDITION_ON_PARTITION_COLUMN"}
