"""A small catalog and two ways to show a rule at work, for the rules' own examples."""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.planner.build import build
from airflow_hive_opt.planner.catalog import Column, JsonCatalog, Table
from airflow_hive_opt.planner.draw import draw
from airflow_hive_opt.planner.operators import Operator
from airflow_hive_opt.planner.parse import parse
from airflow_hive_opt.planner.plan import plan
from airflow_hive_opt.planner.resolve import resolve


def _columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "string") for name in names)


CATALOG = JsonCatalog.of(
    [
        Table("default.src", _columns("key", "value")),
        Table("default.sales", _columns("item", "amount"), _columns("ds")),
        Table("default.days", _columns("ds", "year"), total_bytes=5812),
    ]
)


def before_and_after(rule: Callable[[Operator], Operator], sql: str) -> str:
    """The trees of ``sql`` before and after ``rule``, an arrow between them."""
    (tree,) = build(resolve(sql, parse(sql), CATALOG))
    return f"{draw(tree)}\n-->\n{draw(rule(tree))}"


def decisions(sql: str) -> str:
    """One line for each scan of a partitioned table."""
    return "\n".join(
        f"{decision.alias}: {decision.reason}"
        + "".join(f" by {source.sql}" for source in decision.sources)
        for decision in plan(sql, CATALOG).decisions
    )
