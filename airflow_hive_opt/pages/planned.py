"""A statement's plan, before it has run, in the form of a run's page."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.documents.report import NO_PARTITIONED_TABLE
from airflow_hive_opt.explain.plan_text import Explanation
from airflow_hive_opt.explain.stages import summaries
from airflow_hive_opt.pages.models import Instance, Scan, Source, Stage, Statement
from airflow_hive_opt.pages.places import place_at
from airflow_hive_opt.pruning.advice import advice_on
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.reasons import Reason


def instance_of_plan(found: Explanation, script: str) -> Instance:
    """The plan as a task instance without ids, numbers and times."""
    decisions = found.pruning.decisions if found.pruning else ()
    scans = [_scan(decision, script) for decision in decisions]
    starts = [decision.scan.reference and decision.scan.reference[0] for decision in decisions]
    pruned = [decision for decision in decisions if decision.pruned]
    return Instance(
        dag_id="",
        run_id="",
        task_id="Plan of a statement",
        map_index=-1,
        headline=f"{len(pruned)} of {len(decisions)} scans of partitioned tables will be pruned",
        reason=_reason(decisions),
        kept=0,
        total=0,
        scans=scans,
        predicates=[],
        reads=[],
        phases=[],
        statement=Statement(
            user=script, ran=found.rewriting.sql if found.rewriting.applied else None
        ),
        stages=[Stage.of(stage, starts) for stage in summaries(found.hive)],
        eliminated=[],
        vanished=0,
        appeared=0,
        descriptor="there",
    )


def _reason(decisions: Sequence[ScanDecision]) -> str:
    """As :func:`~airflow_hive_opt.documents.report.reason` tells it of a run."""
    if any(decision.pruned for decision in decisions):
        return Reason.PRUNED
    return decisions[0].reason if decisions else NO_PARTITIONED_TABLE


def _scan(decision: ScanDecision, script: str) -> Scan:
    at = decision.scan.reference
    return Scan(
        scan=decision.scan.name,
        alias=decision.scan.alias,
        table=decision.scan.table,
        reference=at,
        place=place_at(script, *at) if at else None,
        reason=decision.reason,
        sentence=decision.reason.sentence,
        advice=advice_on(decision.reason),
        path=decision.path if decision.pruned else None,
        columns=list(decision.columns),
        sources=[
            Source(name=source.name, aliases=list(source.aliases), sql=source.sql)
            for source in decision.sources
        ],
    )
