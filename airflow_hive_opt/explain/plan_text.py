"""The output of EXPLAIN: a plan as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_hive_opt.explain.on_spark import (
    SparkWork,
    hints_on_spark,
    joins_on_spark,
    work_by_text,
)
from airflow_hive_opt.explain.partition_sink import PartitionSink, place_sinks
from airflow_hive_opt.hive.compiler import HivePlan, compile_statement
from airflow_hive_opt.hive.explain.facts import count, facts
from airflow_hive_opt.hive.explain.stage_text import explain_text
from airflow_hive_opt.pruning.advice import advice_on
from airflow_hive_opt.pruning.decisions import KeyPredicate, Path, ScanDecision
from airflow_hive_opt.pruning.operators import Filter, Operator, TableScan, draw, subquery_of, walk
from airflow_hive_opt.pruning.plan import Plan, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.scan_way import WAYS
from airflow_hive_opt.rewriting import Rewriting, rewrite
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.script import split_settings
from airflow_hive_opt.statement.settings import CORRELATION, Settings

_PREDICATE = (
    "the small table's keys go to the scan as a condition on a data column, "
    "if its files can skip enough by them"
)


@dataclass(frozen=True)
class Explanation:
    """Hive's plan of a statement and the decisions of partition pruning.

    ``pruning`` is ``None`` if only Hive's grammar can parse the statement; ``warnings`` then gives
    the reason. ``jobs_before`` is the number of MapReduce jobs without the Correlation Optimizer,
    which Hive leaves off by default. ``rewriting`` is the statement as a run on Spark rewrites it.
    ``work`` is Spark's work for the original and for the rewritten statement.
    """

    hive: HivePlan
    pruning: Plan | None
    jobs_before: int
    rewriting: Rewriting
    warnings: tuple[str, ...]
    hints: tuple[tuple[str, str], ...] = ()
    work: tuple[SparkWork, SparkWork] | None = None


def explain(
    script: str,
    catalog: Catalog,
    overrides: Mapping[str, object] | None = None,
    measure: Callable[[str], SparkWork | None] | None = None,
    correlate: Callable[[str, Settings], Rewriting] | None = None,
    switches: Mapping[str, object] | None = None,
) -> Explanation:
    """Explains one statement. ``SET`` lines may precede it.

    ``overrides`` are Hive's settings, ``switches`` the planner's, and ``SET`` lines override both.
    ``measure`` returns Spark's work for a statement, ``correlate`` the rewriting that a run would
    use. Both need Spark. Without them, the values come from the text and the catalog.

    Raises :class:`~airflow_hive_opt.statement.errors.PlanError` if Hive rejects the statement, and
    ``ValueError`` for a wrong switch.
    """
    own, sql = split_settings(script)
    settings = Settings.of(overrides, switches, own)
    hive = compile_statement(sql, catalog, settings)
    jobs_before = count(hive, "MapReduce")
    if hive.correlated:
        plain = Settings({**settings.values, "hive.optimize.correlation": "false"})
        jobs_before = count(compile_statement(sql, catalog, plain), "MapReduce")
    warnings = settings.warnings
    try:
        pruning: Plan | None = plan(sql, catalog, settings)
    except PlanError as error:
        pruning = None
        warnings += (f"partition pruning is not planned for this statement: {error}",)
    for_run = Settings.of({CORRELATION: "auto", **(overrides or {})}, switches, own)
    rewriting = correlate(sql, for_run) if correlate else rewrite(sql, catalog, for_run)
    hints = tuple(hints_on_spark(sql))
    work = _work(sql, rewriting, measure)
    return Explanation(hive, pruning, jobs_before, rewriting, warnings, hints, work)


def _work(
    sql: str, rewriting: Rewriting, measure: Callable[[str], SparkWork | None] | None
) -> tuple[SparkWork, SparkWork] | None:
    """Returns Spark's work without and with the rewriting; ``None`` if parsing the text fails."""
    try:
        plain, other = (
            (measure and measure(text)) or work_by_text(text) for text in (sql, rewriting.sql)
        )
    except (PlanError, RecursionError):
        return None
    return plain, other


def sinks(found: Explanation) -> tuple[PartitionSink, ...]:
    """Returns the places in Hive's tasks that would make and read partition lists."""
    return place_sinks(found.hive.stages, found.pruning.decisions if found.pruning else ())


def explanation_to_json(found: Explanation) -> dict[str, object]:
    """Returns the explanation as a JSON object."""
    return {
        "verdict": "ok",
        "statement": found.hive.kind,
        **facts(found.hive),
        "pruning": _all_pruning(found.pruning) if found.pruning else [],
        "partition_sinks": [
            {
                "stage": sink.local_work.name,
                "read_by": sink.job.name,
                **sink.scan.to_json(),
                "sources": [alias for source in sink.sources for alias in source.aliases],
            }
            for sink in sinks(found)
        ],
        "correlation": {
            "applied": found.hive.correlated,
            "jobs_before": found.jobs_before,
            "jobs_after": count(found.hive, "MapReduce"),
        },
        "on_spark": {
            "joins": [
                {
                    "stage": join.stage,
                    "aliases": list(join.aliases),
                    "strategy": join.strategy.value,
                    "message": join.message,
                }
                for join in joins_on_spark(found.hive)
            ],
            "hints": [{"hint": name, "message": message} for name, message in found.hints],
        },
        "rewriting": {
            "applied": list(found.rewriting.applied),
            "sql": found.rewriting.sql if found.rewriting.applied else None,
            "scans": [each.scans for each in found.work] if found.work else None,
            "shuffles": [each.shuffles for each in found.work] if found.work else None,
            "refused": [
                {"rewriting": name, "reason": reason.value, "message": reason.sentence}
                for name, reason in found.rewriting.refused
            ],
        },
        "warnings": list(found.warnings),
    }


def explanation_to_text(found: Explanation) -> str:
    """Returns Hive's EXPLAIN, then the decisions of partition pruning."""
    decisions = found.pruning.decisions if found.pruning else ()
    parts = [explain_text(found.hive), "", "PARTITION PRUNING:"]
    parts.extend(_pruning_text(decision) for decision in decisions)
    parts.extend(map(_predicate_text, found.pruning.predicates if found.pruning else ()))
    for sink in sinks(found):
        parts.append(f"  {sink.local_work.name}: Partition Desc Gen Sink Operator")
        parts.append(f"    takes the keys of {', '.join(source.name for source in sink.sources)}")
        parts.append(f"  {sink.job.name}: prelaunch of TableScan {sink.scan.name}")
        parts.append(f"    reads the partition list of {sink.local_work.name}")
    if not decisions:
        parts.append("  no partitioned table is read" if found.pruning else "  not planned")
    parts += ["", "JOINS ON SPARK:"]
    for join in joins_on_spark(found.hive):
        parts += [f"  {join.stage}: {join.strategy} ({', '.join(join.aliases)})"]
        parts += [f"    {join.message}"]
    parts += [f"  hint {name}: {message}" for name, message in found.hints]
    if parts[-1] == "JOINS ON SPARK:":
        parts.append("  none")
    parts += ["", "CORRELATION:"]
    if found.hive.correlated:
        after = count(found.hive, "MapReduce")
        parts.append(f"  Hive: {found.jobs_before} jobs become {after}")
    for name in found.rewriting.applied:
        parts.append(f"  Spark: {name}")
    if not found.rewriting.applied and not found.rewriting.refused:
        parts.append("  Spark: no two parts of the statement read one table by one key")
    if found.work:
        parts.append(f"  Spark: {_work_text(*found.work)}")
    if found.rewriting.applied:
        parts += [f"    {line}" for line in found.rewriting.sql.splitlines()]
    for name, reason in found.rewriting.refused:
        parts.append(f"  not rewritten for Spark ({name}): {reason}, {reason.sentence}")
    return "\n".join(parts)


def _work_text(plain: SparkWork, other: SparkWork) -> str:
    def told(work: SparkWork) -> str:
        shuffles = "" if work.shuffles is None else f", shuffles: {work.shuffles}"
        return f"scans: {work.scans}{shuffles}"

    return told(plain) if plain == other else f"{told(plain)}; rewritten, {told(other)}"


def to_json(plan: Plan) -> dict[str, object]:
    """Returns the decisions of partition pruning as a JSON object, without Hive's plan."""
    return {
        "verdict": "ok",
        "statement": plan.kind,
        "passed_through": plan.passed_through,
        "filters": [
            {"alias": alias, "at": "scan" if at_scan else "after_join", "predicate": predicate}
            for tree in plan.trees
            for alias, at_scan, predicate in _filters(tree)
        ],
        "pruning": _all_pruning(plan),
        "warnings": list(plan.warnings),
    }


def error_to_json(error: PlanError) -> dict[str, object]:
    """Returns a rejection as a JSON object."""
    return {
        "verdict": "error",
        "code": error.code,
        "hive_code": error.number,
        "message": error.message,
        "line": error.line,
        "column": error.column,
    }


def to_text(plan: Plan) -> str:
    """Returns the operator trees and the decisions of partition pruning as text."""
    parts = ["OPERATOR TREES:"]
    parts.extend(draw(tree, 1) for tree in plan.trees)
    if plan.kind is None:
        parts.append(f"  the statement passes through to Spark as it is: {plan.passed_through}")
    parts.append("\nPARTITION PRUNING:")
    parts.extend(_pruning_text(decision) for decision in plan.decisions)
    parts.extend(map(_predicate_text, plan.predicates))
    if plan.kind is None:
        parts.append("  none: the statement is not planned")
    elif not plan.decisions:
        parts.append("  the statement reads no partitioned table")
    return "\n".join(parts)


def _filters(tree: Operator) -> list[tuple[str, bool, str]]:
    """Lists the filters of a tree, without join conditions.

    Each entry has the aliases, whether the filter is at the scan, and the text of the condition.
    """
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


def _all_pruning(plan: Plan) -> list[dict[str, object]]:
    decisions = [_pruning(decision) for decision in plan.decisions]
    return decisions + [_predicate(predicate) for predicate in plan.predicates]


def _predicate(predicate: KeyPredicate) -> dict[str, object]:
    source = predicate.source
    return {
        **predicate.relation.scan.to_json(),
        "columns": [predicate.column],
        "path": Path.PREDICATE.value,
        "sources": [{"aliases": list(source.aliases), "sql": source.sql}],
        "reason": Reason.PRUNED.value,
        "message": _PREDICATE,
    }


def _predicate_text(predicate: KeyPredicate) -> str:
    scan = predicate.relation.scan
    head = f"  {scan.name} ({scan.table}): path {Path.PREDICATE}"
    return f"{head}\n    {_PREDICATE}\n    keys: {predicate.source.sql}"


def _pruning(decision: ScanDecision) -> dict[str, object]:
    return {
        **decision.scan.to_json(),
        "columns": list(decision.columns),
        "path": decision.path.value,
        "sources": [
            {"aliases": list(source.aliases), "sql": source.sql} for source in decision.sources
        ],
        "reason": decision.reason.value,
        "message": decision.reason.sentence,
        **({"advice": advice} if (advice := advice_on(decision.reason)) else {}),
    }


def _pruning_text(decision: ScanDecision) -> str:
    path = f", path {decision.path}" if decision.pruned else ""
    head = f"  {decision.scan.name} ({decision.scan.table}): {decision.reason.value}{path}"
    lines = [head, f"    {decision.reason.sentence}"]
    for number, each in enumerate(decision.alternatives):
        if number:
            lines.append("    or, for another reader of the CTE:")
        for source in each.sources:
            lines.append(f"    keys: {source.sql}")
            lines.append(f"    compared by: {' AND '.join(source.conditions)}")
        for condition in each.conditions:
            lines.append(f"    and of the statement itself: {condition.sql}")
    if decision.pruned:
        lines.append(f"    {WAYS}")
    if advice := advice_on(decision.reason):
        lines.append(f"    to do: {advice} More: docs/guides/troubleshooting.md#nothing-is-pruned")
    return "\n".join(lines)
