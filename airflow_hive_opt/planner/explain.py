"""EXPLAIN: a plan as text for people and as JSON for programs."""

from __future__ import annotations

from airflow_hive_opt.planner.draw import draw
from airflow_hive_opt.planner.errors import PlanError
from airflow_hive_opt.planner.operators import Filter, Operator, TableScan, subquery_of, walk
from airflow_hive_opt.planner.plan import Plan
from airflow_hive_opt.planner.pruning import ScanDecision


def to_json(plan: Plan) -> dict[str, object]:
    """The machine-readable plan: ``verdict``, ``filters``, ``pruning``."""
    return {
        "verdict": "ok",
        "statement": plan.kind,
        "passed_through": plan.passed_through,
        "filters": [
            {"alias": alias, "at": "scan" if at_scan else "after_join", "predicate": predicate}
            for tree in plan.trees
            for alias, at_scan, predicate in _filters(tree)
        ],
        "pruning": [_pruning(decision) for decision in plan.decisions],
        "warnings": list(plan.warnings),
    }


def error_to_json(error: PlanError) -> dict[str, object]:
    """The machine-readable form of a rejection."""
    return {
        "verdict": "error",
        "code": error.code,
        "message": error.message,
        "line": error.line,
        "column": error.column,
    }


def to_text(plan: Plan) -> str:
    """Operator trees and decisions for people."""
    parts = ["OPERATOR TREES:"]
    parts.extend(draw(tree, 1) for tree in plan.trees)
    if plan.kind is None:
        parts.append(f"  the statement passes through to Spark as it is: {plan.passed_through}")
    parts.append("\nPARTITION PRUNING:")
    parts.extend(_pruning_text(decision) for decision in plan.decisions)
    if plan.kind is None:
        parts.append("  none: the statement is not planned")
    elif not plan.decisions:
        parts.append("  no partitioned table is read")
    return "\n".join(parts)


def _filters(tree: Operator) -> list[tuple[str, bool, str]]:
    """Alias, whether at the scan, and text of every condition that is not part of a join."""
    return [
        (
            ",".join(sorted(condition.aliases)),
            isinstance(operator.input, TableScan) or subquery_of(operator.input) is not None,
            condition.text,
        )
        for operator in walk(tree)
        if isinstance(operator, Filter)
        for condition in operator.conditions
    ]


def _pruning(decision: ScanDecision) -> dict[str, object]:
    return {
        "alias": decision.alias,
        "table": decision.table.name,
        "columns": list(decision.columns),
        "path": "fast" if decision.pruned else "none",
        "sources": [{"aliases": [source.alias], "sql": source.sql} for source in decision.sources],
        "reason": decision.reason.value,
        "message": decision.reason.sentence,
    }


def _pruning_text(decision: ScanDecision) -> str:
    head = f"  {decision.alias} ({decision.table.name}): {decision.reason.value}"
    lines = [head, f"    {decision.reason.sentence}"]
    for source in decision.sources:
        lines.append(f"    keys for {', '.join(source.partition_columns)}: {source.sql}")
    for predicate in decision.static_predicates:
        lines.append(f"    and of the statement itself: {predicate}")
    return "\n".join(lines)
