"""Tables whose files Hive's transactions decide on: whole, and no source of keys."""

from __future__ import annotations

import pytest

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.statement.catalog import JsonCatalog
from airflow_hive_opt.statement.settings import Settings

COLUMNS = [["id", "string"], ["day", "string"]]
PARTITIONED = {"columns": COLUMNS[:1], "partition_columns": COLUMNS[1:], "total_bytes": 10**9}
ACID = {"transactional": True}
TABLES = JsonCatalog.of_documents(
    [
        {"name": "sales", **PARTITIONED},
        {"name": "acid_sales", **PARTITIONED, **ACID},
        {"name": "days", "columns": COLUMNS, "total_bytes": 100},
        {"name": "acid_days", "columns": COLUMNS, "total_bytes": 100, **ACID},
        {"name": "acid_returns", **PARTITIONED, "total_bytes": 100, **ACID},
        {"name": "acid_view", "columns": COLUMNS, "view": "SELECT id, day FROM acid_sales"},
    ]
)


def planned(sql):
    return plan(sql, TABLES, Settings.of(switches={"key_predicate": True}))


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("acid_sales s JOIN days d ON s.day = d.day", ["TRANSACTIONAL_TABLE"]),
        ("acid_sales s WHERE s.day = '1'", ["TRANSACTIONAL_TABLE"]),
        ("acid_view s JOIN days d ON s.day = d.day", ["TRANSACTIONAL_TABLE"]),
        ("sales s JOIN acid_days d ON s.day = d.day", ["KEY_SOURCE_TRANSACTIONAL"]),
        (
            "sales s JOIN (SELECT max(day) AS day FROM acid_days) d ON s.day = d.day",
            ["KEY_SOURCE_TRANSACTIONAL"],
        ),
        # the names of its partitions are no keys either
        (
            "sales s JOIN acid_returns r ON s.day = r.day",
            ["KEY_SOURCE_TRANSACTIONAL", "TRANSACTIONAL_TABLE"],
        ),
        (
            "sales s JOIN acid_view r ON s.day = r.day",
            ["KEY_SOURCE_TRANSACTIONAL", "TRANSACTIONAL_TABLE"],
        ),
        # another table's keys still prune
        ("sales s JOIN acid_days a ON s.day = a.day JOIN days d ON s.day = d.day", ["PRUNED"]),
    ],
)
def test_scans_of_transactional_tables_are_whole_and_give_no_keys(sql, reasons):
    assert [found.reason.value for found in planned(f"SELECT s.id FROM {sql}").decisions] == reasons


def test_transactional_tables_have_no_key_predicates():
    sql = "SELECT s.day FROM {} s JOIN {} d ON s.id = d.id"
    assert len(planned(sql.format("sales", "days")).predicates) == 1
    assert planned(sql.format("acid_sales", "days")).predicates == ()
    assert planned(sql.format("sales", "acid_days")).predicates == ()
