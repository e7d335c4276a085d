"""Applies the rewritings, in order, until none of them applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.plan import plan
from airflow_hive_opt.rewriting import (
    aggregate_once,
    merged_aggregates,
    self_join_window,
    shared_scan,
)
from airflow_hive_opt.rewriting.blocks import Block, Text
from airflow_hive_opt.rewriting.cost import Cost
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.rewriting.whole_statement import require_repeatable
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import parse, span_of, why_unsupported
from airflow_hive_opt.statement.settings import CORRELATION, Settings

Rule = Callable[[Block, Cost], "list[Edit] | None"]

AGGREGATE_ONCE = "aggregate_once"
RULES: tuple[tuple[str, Rule], ...] = (
    (AGGREGATE_ONCE, aggregate_once.apply),  # a join with an aggregate of itself is aggregated once
    ("self_join_window", self_join_window.apply),  # a table tested against itself gets a window
    ("merged_aggregates", merged_aggregates.apply),  # two aggregates by one key become one
    ("shared_scan", shared_scan.apply),  # reads by the same key share one shuffled scan
)
_MOST = 16


@dataclass(frozen=True)
class Rewriting:
    """The statement for Spark to run, in ``sql``.

    ``applied`` are the applied rules, in their order. ``refused`` has pairs of a rule that found
    its shape but was not applied, and the reason.
    """

    sql: str
    applied: tuple[str, ...] = ()
    refused: tuple[tuple[str, Refusal], ...] = ()


def rewrite(sql: str, catalog: Catalog, settings: Settings) -> Rewriting:
    """Rewrites the statement where its rows stay the same and a gain is expected.

    A statement that can't be parsed is returned unchanged; the function raises no error for it. No
    table is looked up for a statement that reads no table twice. Raises
    :class:`~airflow_hive_opt.statement.budget.OverBudget` inside a budget.
    """
    if settings.values[CORRELATION] == "false":
        return Rewriting(sql, refused=(("*", Refusal.OFF),))
    try:
        return _rewrite(sql, catalog, settings)
    except (PlanError, RecursionError):
        return Rewriting(sql, refused=(("*", Refusal.FORM_NOT_KNOWN),))


def query_of(sql: str) -> str:
    """The query of a SELECT, INSERT or CREATE TABLE AS.

    Raises :class:`PlanError` if the statement has no query that can run on its own.
    """
    tree = parse(sql)
    if isinstance(tree, exp.Query):
        return sql
    query = tree.args.get("expression")
    span = span_of(query) if isinstance(query, exp.Query) else None
    if span is None or tree.args.get("with_"):
        raise PlanError("SEMANTIC", "the statement has no query of its own")
    return span.of(sql)


def _rewrite(sql: str, catalog: Catalog, settings: Settings) -> Rewriting:
    if why_unsupported(sql):
        return Rewriting(sql, refused=(("*", Refusal.FORM_NOT_KNOWN),))
    tree = parse(sql)
    found = Rewriting(sql)
    if not _reads_twice(tree):
        return found
    for _ in range(_MOST):
        text = Text(found.sql, tree, catalog)
        refused: dict[tuple[str, Refusal], None] = {}
        done = _first(text, Cost(settings), refused)
        found = Rewriting(found.sql, found.applied, tuple(refused))
        if done is None:
            return Rewriting(found.sql, found.applied, _without_vague(found))
        name, rewritten = done
        before, after = (
            _tables_pruned_by_keys(each, catalog, settings) for each in (sql, rewritten)
        )
        if before - after:
            reason = (name, Refusal.PRUNING_WOULD_BE_LOST)
            return Rewriting(found.sql, found.applied, (*found.refused, reason))
        found = Rewriting(rewritten, (*found.applied, name), found.refused)
        tree = parse(rewritten)
    return found


def _reads_twice(tree: exp.Expr) -> bool:
    """Whether a table may be read more than once; otherwise no query is correlated."""
    names = [node.name.lower() for node in nodes(tree) if isinstance(node, exp.Table)]
    return len(set(names)) < len(names)


def _without_vague(found: Rewriting) -> tuple[tuple[str, Refusal], ...]:
    """The refusals, without vague reasons of rules that were also applied."""
    vague = (Refusal.FORM_NOT_KNOWN, Refusal.NO_SHARED_KEY)
    return tuple(
        (name, reason)
        for name, reason in found.refused
        if not (name in found.applied and reason in vague)
    )


def _first(
    text: Text, cost: Cost, refused: dict[tuple[str, Refusal], None]
) -> tuple[str, str] | None:
    """The first rule that applies, and the text after it."""
    for name, rule in RULES:
        for block in text.blocks():
            check_budget()
            try:
                edits = rule(block, cost)
                if edits:
                    require_repeatable(text.sql, text.tree, text.catalog)
                    return name, spliced(text.sql, edits)
            except Refused as error:
                refused[(name, error.reason)] = None
    return None


def _tables_pruned_by_keys(sql: str, catalog: Catalog, settings: Settings) -> set[str]:
    """The tables whose partitions are pruned by keys."""
    return {
        decision.table.name
        for decision in plan(sql, catalog, settings).decisions
        if decision.sources
    }
