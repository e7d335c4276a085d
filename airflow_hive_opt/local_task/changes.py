"""Where a statement that changes rows takes conditions, for the map join."""

from __future__ import annotations

from airflow_hive_opt.documents.descriptor import Changes, Insertion
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.statement.parse import Span


def changes_of(plan: Plan) -> Changes | None:
    """Where MERGE, UPDATE or DELETE takes conditions; ``None`` for other statements."""
    if (found := plan.row_level) is None:
        return None
    return Changes(
        _position(found.target),
        _position(found.condition),
        _position(found.source) if found.source else None,
        found.source_alias,
        tuple(
            Insertion(clause.at, _position(clause.condition) if clause.condition else None)
            for clause in found.inserts
        ),
        found.aliased,
    )


def _position(span: Span) -> tuple[int, int]:
    return span.start, span.stop


def merged_into(plan: Plan, decision: ScanDecision) -> str | None:
    """The alias of MERGE's source if the scan is MERGE's target; else ``None``."""
    found, relation = plan.row_level, decision.relation
    if found is None or relation is None or found.source is None:
        return None
    return found.source_alias if relation.reference == found.target else None
