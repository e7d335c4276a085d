"""HIVE-5119 on Hive's tasks: who makes the list of partitions, who reads it, and who must not."""

import pytest

from airflow_hive_opt.explain.plan_text import explain, explanation_to_json, explanation_to_text
from airflow_hive_opt.statement.example_catalog import CATALOG

JOIN = "SELECT s.amount FROM sales s JOIN days d ON s.ds = d.ds"
CONDITIONAL = {"hive.auto.convert.join.noconditionaltask": "false"}


def sinks(sql: str, switches: dict | None = None, **settings: str) -> list[dict]:
    conf = {"hive.mapred.mode": "nonstrict", **settings}
    found = explain(sql, CATALOG, conf, switches=switches)
    return explanation_to_json(found)["partition_sinks"]


def test_cascading_map_joins_share_one_partition_sink():
    sql = f"{JOIN} JOIN src x ON s.ds = x.key JOIN src1 y ON s.item = y.key"
    (sink,) = sinks(sql)
    assert (sink["stage"], sink["read_by"]) == ("Stage-1", "Stage-2")
    assert (sink["scan"], sink["table"]) == ("s", "default.sales")
    assert sink["sources"] == ["d", "x"]


def test_a_small_subquery_is_a_source_of_the_partition_sink():
    sql = "SELECT 1 FROM sales s JOIN (SELECT ds FROM days WHERE year = '1') q ON s.ds = q.ds"
    assert [sink["sources"] for sink in sinks(sql)] == [["q"]]


@pytest.mark.parametrize(
    ("sql", "settings"),
    [
        (JOIN, {"hive.auto.convert.join": "false"}),  # joined in reducers
        (JOIN, CONDITIONAL),  # a backup plan reads the table whole
        (JOIN.replace("JOIN", "LEFT JOIN"), {}),
        (JOIN, {"switches": {"partition_pruning": False}}),
        ("SELECT 1 FROM sales s JOIN src x ON s.item = x.key", {}),
    ],
)
def test_statements_that_prune_no_partitions_have_no_partition_sink(sql, settings):
    assert sinks(sql, **settings) == []


def test_the_text_shows_the_partition_sink_and_the_scan_that_reads_it():
    text = explanation_to_text(explain(JOIN, CATALOG))
    assert "Stage-1: Partition Desc Gen Sink Operator" in text
    assert "Stage-2: prelaunch of TableScan s" in text
