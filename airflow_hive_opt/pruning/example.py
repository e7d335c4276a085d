"""Functions that show the effect of a pruning rule, for the examples in docstrings."""

from __future__ import annotations

from airflow_hive_opt.pruning.decisions import Plan
from airflow_hive_opt.pruning.hops import hops
from airflow_hive_opt.pruning.operators import Operator, build, draw, relations
from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.pruning.query import NarrowedTable
from airflow_hive_opt.pruning.resolve import resolve
from airflow_hive_opt.pruning.row_level import as_query
from airflow_hive_opt.pruning.rules import RULES, Rule
from airflow_hive_opt.pruning.rules.weakening import weaken
from airflow_hive_opt.statement.catalog import Column, JsonCatalog, Table
from airflow_hive_opt.statement.example_catalog import CATALOG
from airflow_hive_opt.statement.lake_formats import ICEBERG
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.settings import Settings

_COLUMNS = (Column("day", "date"), Column("v", "int"), Column("ticket", "bigint"))
LAKE = JsonCatalog.of(
    Table(
        f"lake.s.{name}",
        _COLUMNS,
        total_bytes=size,
        provider=ICEBERG,
        clustered_by=("day",),
        indexed=("ticket",) if name == "sales" else (),
        partition_fields=(("day", "day"),),
    )
    for name, size in (("orders", 10**9), ("days", 5812), ("sales", 10**9), ("returns", 10**8))
)


def around(rule: Rule, sql: str) -> tuple[Plan, Plan]:
    """The plans of ``sql`` before and after ``rule``. The rules before it have run."""
    settings = Settings.of()
    before = Plan(sql, "SELECT", None, build(resolve(sql, parse(sql), CATALOG)), ())
    for earlier in RULES[: RULES.index(rule)]:
        before = earlier(before, settings)
    return before, rule(before, settings)


def before_and_after(rule: Rule, sql: str) -> str:
    """The trees of ``sql`` before and after ``rule``, with an arrow between them."""
    return "\n-->\n".join("\n".join(map(draw, plan.trees)) for plan in around(rule, sql))


def decisions(sql: str, catalog: JsonCatalog = CATALOG) -> str:
    """One line for each scan of a partitioned table."""
    return "\n".join(
        f"{decision.scan.name}: {decision.reason}"
        + (f", {decision.path}" if decision.pruned else "")
        + "".join(f" by {source.sql}" for source in decision.sources)
        for decision in plan(sql, catalog).decisions
    )


def row_level(sql: str) -> str:
    """The query that reads the target of MERGE, UPDATE or DELETE, and its parts."""
    found = as_query(sql, parse(sql))
    if found is None:
        return ""
    statement, query = found
    source = f"\nsource: {statement.source.of(sql)}" if statement.source else ""
    return f"{query.sql()}\ncondition: {statement.condition.of(sql)}{source}"


def keys_of_metadata(sql: str) -> str:
    """The key query of an Iceberg table's rows, and the one of its list of partitions."""
    (source,) = plan(sql, LAKE).decisions[0].sources
    return f"{source.sql}\n-->\n{source.metadata_sql}".replace(") AS", ")\nAS")


def followed(sql: str, alias: str, part: str) -> str:
    """The keys of a part of a large table for the indexes of others."""
    planned = plan(sql, LAKE)
    scan = next(found.scan for found in planned.decisions if found.scan.alias == alias)
    narrowed = NarrowedTable(scan, part, "VERSION AS OF 1")
    lines = (
        f"{found.scan.name}.{', '.join(source.partition_columns)} by {source.sql}"
        for found in hops(planned, [narrowed], Settings.of())
        for source in found.sources
    )
    return "\n".join(lines).replace(" WHERE ", "\nWHERE ")


def surviving(from_: str, alias: str) -> str:
    """The conditions that hold for the relation ``alias``, and those that are dropped."""
    below = _below_select(from_)
    weakened = weaken(below, relations(below)[alias])
    return "\n".join(
        [f"holds: {condition.text}" for condition in weakened.holding]
        + [f"dropped, {reason}: {condition.text}" for condition, reason in weakened.dropped]
    )


def aliases(from_: str) -> tuple[str, ...]:
    """The aliases of the relations in FROM."""
    return tuple(relations(_below_select(from_)))


def _below_select(from_: str) -> Operator:
    sql = f"SELECT 1 FROM {from_}"
    (tree,) = build(resolve(sql, parse(sql), CATALOG))
    (select,) = tree.inputs
    (below,) = select.inputs
    return below


def key_predicates(sql: str) -> str:
    """One line for each data column that a small table's keys can restrict."""
    settings = Settings.of(switches={"key_predicate": True})
    return "\n".join(
        f"{found.relation.alias}.{found.column} by {found.source.sql}"
        for found in plan(sql, CATALOG, settings).predicates
    )
