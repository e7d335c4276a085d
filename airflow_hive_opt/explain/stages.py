"""Hive's stages of a statement in short, for a run's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_hive_opt.documents.report import StageSummary
from airflow_hive_opt.hive.compiler import HivePlan, compile_statement
from airflow_hive_opt.hive.explain.facts import joins_in
from airflow_hive_opt.hive.tasks import Task, scans_below
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.settings import Settings


def stages_of(sql: str, catalog: Catalog, settings: Settings) -> tuple[StageSummary, ...]:
    """The stages that Hive 2.3 would run; raises ``PlanError`` if Hive rejects the statement."""
    return summaries(compile_statement(sql, catalog, settings))


def summaries(plan: HivePlan) -> tuple[StageSummary, ...]:
    """The stages of a plan."""
    return tuple(
        StageSummary(
            task.name,
            task.kind,
            tuple(parent.name for parent in task.parents),
            tuple(dict.fromkeys(_scans(task))),
            tuple(map(_line, joins_in(task))),
        )
        for task in plan.stages
    )


def _scans(task: Task) -> Iterator[int]:
    scans = (scan for root in task.operators() for scan in scans_below(root))
    for scan in scans:
        if scan.at is not None:
            yield scan.at


def _line(join: Mapping[str, object]) -> str:
    aliases = join["aliases"]
    names = ", ".join(map(str, aliases)) if isinstance(aliases, list) else ""
    return f"{join['kind']} of {names} in the {join['phase']} phase"
