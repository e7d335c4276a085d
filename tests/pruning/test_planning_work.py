"""The work of planning long statements: it grows with their length, and the budget ends it."""

from __future__ import annotations

import gc
import itertools
import sys
import threading

import pytest

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.rewriting.blocks import Text
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.rewriting.rewrite import rewrite
from airflow_hive_opt.statement import parse as parsing
from airflow_hive_opt.statement.budget import Budget, OverBudget, check_budget
from airflow_hive_opt.statement.catalog import JsonCatalog, Table
from airflow_hive_opt.statement.dialect import has_in_order
from airflow_hive_opt.statement.errors import PlanError, TooComplex
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.tables import is_query, tables_of
from tests.long_statements import SHAPES, exists, in_list, joins, parentheses
from tests.pruning.catalogs import columns

CATALOG = JsonCatalog.of(
    [
        Table("default.fact", columns(id="int", v="int"), columns(p="int"), 10**9),
        Table("default.dim", columns(k="int", w="int"), (), 5000),
    ]
)
SETTINGS = Settings.for_run()
# As many parts as fit the depth of Python's stack; a tenth of them is the short statement.
PARTS = {
    "IN list": 1_000,
    "IN list of the partition column": 1_000,
    "VALUES": 500,
    "joins": 120,
    "EXISTS": 120,
    "OR": 300,
    "chain of CTEs": 80,
}


def without_joins(sql: str) -> int:
    """Eliminates the joins with all key sources of the one scan; returns their number."""
    (decision, *_) = plan(sql, CATALOG, SETTINGS).decisions
    answered = [
        RedundantJoin(
            decision.scan,
            source.scan,
            tuple(
                (column.name, name)
                for column, name in zip(source.columns, source.partition_columns, strict=True)
            ),
            source.asked,
        )
        for source in decision.sources
        if source.scan
    ]
    return len(eliminate_joins(Text(sql, parse(sql), CATALOG), answered, [])[1])


def work(action) -> int:
    """The number of Python functions that ``action`` calls."""
    parsing._parsed.cache_clear()
    calls = itertools.count()

    def count(frame, event, argument):
        if event == "call":
            next(calls)

    before = sys.getprofile()
    gc.disable()  # what other tests have left behind is no work of the action
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return next(calls)


@pytest.mark.parametrize("shape", PARTS)
@pytest.mark.parametrize(
    "step",
    [
        lambda sql: plan(sql, CATALOG, SETTINGS),
        lambda sql: rewrite(sql, CATALOG, SETTINGS),
        tables_of,
        without_joins,
    ],
    ids=["plan", "rewrite", "tables_of", "without_joins"],
)
def test_ten_times_as_long_is_at_most_twelve_times_the_work(shape, step):
    make = SHAPES[shape][0]
    step(make(3))  # what is imported and compiled once
    short, long = (work(lambda: step(make(n))) for n in (PARTS[shape] // 10, PARTS[shape]))  # noqa: B023
    assert long <= 12 * short


def test_all_joins_that_the_keys_decide_are_removed():
    assert without_joins(joins(10)) == 10


def test_a_scan_asks_few_key_queries_and_prefers_filtered_tables():
    unfiltered = "".join(f" JOIN dim d{n} ON f.p = d{n}.k" for n in range(30))
    sql = f"SELECT f.id FROM fact f{unfiltered} JOIN dim e ON f.p = e.k WHERE e.w = 1"
    (decision,) = plan(sql, CATALOG, SETTINGS).decisions
    assert decision.pruned
    assert [source.aliases for source in decision.sources] == [
        *((f"d{number}",) for number in range(15)),
        ("e",),
    ]


@pytest.mark.parametrize("sql", ["SELECT a FROM b WHERE", parentheses(5_000)], ids=["", "deep"])
def test_a_text_that_can_not_be_parsed_is_read_once(sql, monkeypatch):
    parsing._parsed.cache_clear()
    read, real = [], parsing._tree
    monkeypatch.setattr(parsing, "_tree", lambda text: [read.append(text), real(text)][1])
    for _ in range(3):
        with pytest.raises(PlanError):
            parse(sql)
    assert read == [sql]


def test_deep_nesting_is_an_error_of_its_own():
    with pytest.raises(TooComplex):
        plan(parentheses(5_000), CATALOG, SETTINGS)
    with pytest.raises(TooComplex):  # it can be parsed
        plan(joins(400), CATALOG, SETTINGS)


@pytest.mark.parametrize("make", [joins, exists])
def test_a_chain_of_joins_that_is_too_deep_is_not_resolved(make):
    shorter, longer = (work(lambda: planned_in_vain(make(n))) for n in (1_000, 2_000))  # noqa: B023
    assert longer <= 2.4 * shorter


def planned_in_vain(sql):
    with pytest.raises(TooComplex):
        plan(sql, CATALOG, SETTINGS)


def test_a_text_that_would_take_seconds_is_not_parsed():
    sql = in_list(100_000)
    with pytest.raises(TooComplex, match="too long, with more than 300,000 characters, to be"):
        plan(sql, CATALOG, SETTINGS)
    assert rewrite(sql, CATALOG, SETTINGS).sql == sql
    assert not is_query(sql)


def test_patterns_are_searched_once_from_start_to_end():
    # the search of one pattern with .* from each comma would take hours
    assert not has_in_order("," * 2_000_000, [",", r"\bjoin\b"])
    assert has_in_order("WITH a AS (WITH b", [r"\bwith\b", r"\bwith\b"])
    assert not has_in_order("SELECT 1 FROM a JOIN b", [r"\bjoin\b", r"\bjoin\b"])


def test_comments_before_a_statement_are_read_once():
    # to try all ways in which comments can be split would take years
    script = "/* a */ -- b\n" * 200 + "SELECT 1"
    assert split_settings(script) == ({}, script)
    assert split_settings(f"/** x **/ {'/* a */' * 200} SET a=1;")[0] == {"a": "1"}


@pytest.mark.parametrize("shape", PARTS)
def test_a_budget_ends_the_planning_in_the_middle(shape):
    sql = SHAPES[shape][0](PARTS[shape])
    everything = itertools.count()
    with Budget(10**9, everything.__next__):
        plan(sql, CATALOG, SETTINGS)
    checks = next(everything)
    ended = itertools.count()
    with pytest.raises(OverBudget), Budget(checks // 2, ended.__next__):
        plan(sql, CATALOG, SETTINGS)
    assert next(ended) <= checks // 2 + 2


@pytest.mark.parametrize("action", [plan, rewrite])
def test_a_budget_of_zero_seconds_ends_planning_and_rewriting(action):
    sql = "SELECT a.id FROM fact a WHERE a.p IN (SELECT max(b.p) FROM fact b WHERE a.id = b.id)"
    with pytest.raises(OverBudget, match="takes more than 0 s"), Budget(0):
        action(sql, CATALOG, SETTINGS)


def test_a_budget_is_spent_by_all_its_blocks_and_by_no_others():
    now = iter([0, 3, 100, 101, 102, 103])
    budget = Budget(5, now.__next__)
    with budget:
        pass
    check_budget()  # outside
    with budget:  # 1 s, then 2 s, after the 3 s of the first block
        check_budget()
        with pytest.raises(OverBudget):
            check_budget()


def test_a_budget_belongs_to_its_thread():
    found = []
    with Budget(0):
        thread = threading.Thread(target=lambda: found.append(check_budget()))
        thread.start()
        thread.join()
        with pytest.raises(OverBudget):
            check_budget()
    assert found == [None]


def test_plans_share_the_tree_and_do_not_change_it():
    sql = in_list(20)
    before = repr(parse(sql))
    plan(sql, CATALOG, SETTINGS)
    rewrite(sql, CATALOG, SETTINGS)
    without_joins(sql)
    assert repr(parse(sql)) == before
