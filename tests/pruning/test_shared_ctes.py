"""A CTE that is read several times: its scans read what any of the readers needs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from airflow_hive_opt.pruning.operators import TableScan, walk
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.relations import Relations
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.fuzz.generator import query
from tests.fuzz.schema import DIMENSIONS, FACTS
from tests.fuzz.shared import read_several_times
from tests.pruning.catalogs import STAR, columns

YEARS = (
    "WITH t AS (SELECT d.year AS y, s.item AS i, count(*) AS n "
    "FROM sales s JOIN days d ON s.ds = d.ds GROUP BY d.year, s.item) "
)
FUZZED = JsonCatalog.of(
    [
        Table(f"default.{name}", columns(**data), columns(**partitions), total_bytes=10**9)
        for name, (data, partitions) in FACTS.items()
    ]
    + [Table(f"default.{n}", columns(**c), total_bytes=1000) for n, c in DIMENSIONS.items()]
)
DAYS = "WITH t AS (SELECT s.ds, s.item FROM sales s) "


def decision(sql: str):
    """The one decision for the scan ``s``; a CTE's scan is decided once."""
    (found,) = [each for each in plan(sql, STAR).decisions if each.scan.alias == "s"]
    return found


def years(sql: str) -> list[list[str]]:
    """For each alternative, the years that its key queries name."""
    return [
        [year for source in each.sources for year in ("1999", "2000", "2001") if year in source.sql]
        for each in decision(sql).alternatives
    ]


def test_each_reader_of_a_cte_is_an_alternative():
    found = years(
        f"{YEARS} SELECT * FROM t a JOIN t b ON a.i = b.i WHERE a.y = 1999 AND b.y = 2000"
    )
    assert found == [["1999"], ["2000"]]


def test_readers_of_a_cte_with_equal_conditions_are_one_alternative():
    sql = f"{YEARS} SELECT * FROM t a JOIN t b ON a.i = b.i WHERE a.y = 2000 AND b.y = 2000"
    assert years(sql) == [["2000"]]


@pytest.mark.parametrize(
    "other",
    [
        "SELECT * FROM t",
        "SELECT * FROM t TABLESAMPLE (5 PERCENT) WHERE y = 2000",
        "SELECT * FROM t AS u (p, q, r) WHERE q > 5",
        "SELECT year, ds, 1 FROM days WHERE year IN (SELECT y FROM t)",
        "SELECT year, ds, (SELECT max(n) FROM t) FROM days",
        "SELECT * FROM (SELECT * FROM t LIMIT 5) u WHERE y = 2000",
    ],
)
def test_if_one_reader_of_a_cte_has_no_condition_every_key_is_needed(other):
    found = years(f"{YEARS} SELECT * FROM t WHERE y = 1999 UNION ALL {other}")
    assert [] in found


def test_readers_of_a_cte_inside_another_cte_are_alternatives():
    sql = f"{YEARS}, u AS (SELECT * FROM t WHERE y = 1999) SELECT * FROM u JOIN t b ON b.y = 2000"
    assert years(sql) == [["1999"], ["2000"]]
    sql = f"{YEARS}, u AS (SELECT * FROM t), v AS (SELECT * FROM u WHERE y = 1999) SELECT * FROM v"
    assert years(f"{sql} UNION ALL SELECT * FROM u WHERE y = 2001") == [["1999"], ["2001"]]


@pytest.mark.parametrize("both", ["EXCEPT", "INTERSECT", "UNION"])
def test_readers_of_a_cte_in_set_operations_are_alternatives(both):
    found = years(f"{YEARS} SELECT * FROM t WHERE y = 1999 {both} SELECT * FROM t WHERE y = 2000")
    assert found == [["1999"], ["2000"]]


def test_each_reader_of_a_cte_has_its_own_conditions_on_partition_columns():
    sql = (
        f"{DAYS} SELECT t.item FROM t JOIN days d ON t.ds = d.ds WHERE d.year = 1999 "
        "UNION ALL SELECT t.item FROM t WHERE t.ds = '2020-01-01'"
    )
    first, second = decision(sql).alternatives
    assert len(first.sources) == 1
    assert "t.ds = '2020-01-01'" in [found.sql for found in second.conditions]


def test_a_reader_that_needs_all_partitions_leaves_the_scan_of_a_cte_whole():
    sql = f"{DAYS} SELECT * FROM t WHERE ds = '2020-01-01' UNION ALL SELECT * FROM t"
    assert decision(sql).reason is Reason.NO_CONDITION_ON_PARTITION_COLUMN


def test_a_column_list_of_a_cte_renames_columns_for_every_reader():
    sql = YEARS.replace("WITH t AS", "WITH t (year, item, n) AS")
    found = years(
        f"{sql} SELECT * FROM t WHERE year = 1999 UNION ALL SELECT * FROM t WHERE year = 2000"
    )
    assert found == [["1999"], ["2000"]]


def test_a_data_column_of_a_cte_is_filtered_only_if_all_readers_need_the_same_keys():
    settings = Settings.of(switches={"key_predicate": True})
    inside = (
        "WITH t AS (SELECT s.item, i.category AS c FROM sales s JOIN items i ON s.item = i.item) "
    )
    alike = f"{inside} SELECT * FROM t a JOIN t b ON a.item = b.item WHERE a.c = 'x' AND b.c = 'x'"
    assert [found.column for found in plan(alike, STAR, settings).predicates] == ["item"]
    unlike = f"{inside} SELECT * FROM t WHERE c = 'x' UNION ALL SELECT * FROM t WHERE c = 'y'"
    assert plan(unlike, STAR, settings).predicates == ()


def test_ctes_whose_readers_double_each_time_are_planned_quickly():
    steps = ", ".join(
        f"t{n} AS (SELECT a.ds FROM t{n - 1} a JOIN t{n - 1} b ON a.ds = b.ds)"
        for n in range(1, 30)
    )
    sql = f"WITH t0 AS (SELECT s.ds FROM sales s), {steps} SELECT * FROM t29 WHERE ds = 'x'"
    assert decision(sql).reason is not Reason.PRUNED


def test_every_resolved_scan_is_in_an_operator_tree(monkeypatch):
    """A reader that is lost between the two would not be asked which partitions it needs."""
    made: Counter[int] = Counter()
    resolve_table = Relations._table

    def counting(self, *args, **kwargs):
        found = resolve_table(self, *args, **kwargs)
        if isinstance(found, TableRelation):
            made[found.reference.start] += 1
        return found

    monkeypatch.setattr(Relations, "_table", counting)
    several = 0
    for seed in range(300):
        made.clear()
        rng = random.Random(seed)
        sql = read_several_times(rng) if seed % 3 else query(seed).sql
        try:
            trees = plan(sql, FUZZED).trees
        except PlanError:
            continue
        scans = (each for tree in trees for each in walk(tree) if isinstance(each, TableScan))
        found = Counter(scan.relation.reference.start for scan in scans)
        assert found == made, sql
        several += max(made.values()) > 1
    assert several > 100
