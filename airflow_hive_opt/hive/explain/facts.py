"""A Hive plan as JSON: stages, joins, filters, totals."""

from __future__ import annotations

from airflow_hive_opt.hive.compiler import HivePlan
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import columns_of, substitute
from airflow_hive_opt.hive.parser.render import render
from airflow_hive_opt.hive.parser.syntax import Column, Expression
from airflow_hive_opt.hive.tasks import Task, scans_below
from airflow_hive_opt.statement.zip_strict import zip_strict


def facts(plan: HivePlan) -> dict[str, object]:
    """Returns ``stages``, ``joins``, ``filters`` and the number of stages by kind."""
    stages = [
        {
            "id": task.name,
            "kind": task.kind,
            "depends_on": [parent.name for parent in task.parents],
            "has_reduce": task.reducer is not None,
        }
        for task in plan.stages
    ]
    return {
        "stages": stages,
        "joins": [join for task in plan.stages for join in joins_in(task)],
        "filters": _filters(plan),
        "map_reduce": count(plan, "MapReduce"),
        "local_work": count(plan, "LocalWork"),
        "conditional": count(plan, "Conditional"),
    }


def count(plan: HivePlan, kind: str) -> int:
    """Returns the number of stages of a kind."""
    return sum(task.kind == kind for task in plan.stages)


def joins_in(task: Task) -> list[dict[str, object]]:
    """Returns one entry for each join of a stage; empty for stages that are no job."""
    if task.kind != "MapReduce":
        return []
    return [
        {
            "stage": task.name,
            "phase": "map" if isinstance(join, ops.MapJoin) else "reduce",
            "kind": join.kind if isinstance(join, ops.MapJoin) else "Join",
            "conditions": [[each.kind, each.left, each.right] for each in join.conditions],
            "aliases": [aliases[0] for aliases in join.aliases],
            "tag_order": list(join.order),
            "big_alias": _big_alias(join),
        }
        for join in task.joins()
    ]


def _big_alias(join: ops.Join) -> str | None:
    if not isinstance(join, ops.MapJoin) or join.kind == "MapJoin":
        return None
    scans = scans_below(join.parents[join.big])
    return scans[0].path if scans else None


def _filters(plan: HivePlan) -> list[dict[str, str]]:
    """Returns one entry for each conjunct of each filter.

    Branches of a Conditional are left out, because they repeat the filters of their backup. A
    filter counts as after a join if its rows come from a join in the same phase.
    """
    found = []
    for task in plan.stages:
        if task.kind not in ("MapReduce", "Fetch") or task.backup is not None:
            continue
        for operator in task.operators():
            if not isinstance(operator, ops.Filter):
                continue
            parts = [part for part in operator.predicate if part not in operator.generated]
            if _joins_below(operator):
                found += [_after_join(operator, part) for part in parts]
            elif _in_mapper(operator):
                scans = [scan for scan in scans_below(operator) if scan.path]
                found += [
                    {"alias": scan.alias, "at": "scan", "predicate": render(part)}
                    for part in parts
                    for scan in scans
                ]
    return found


def _after_join(operator: ops.Filter, part: Expression) -> dict[str, str]:
    """Returns the entry of a condition over joined rows, with the column names of the SQL text."""
    infos = [operator.info(column.name) for column in columns_of(part)]
    tables = sorted({info.table for info in infos if info and info.table})
    names: dict[str, Expression | None] = {}
    for column, info in zip_strict(columns_of(part), infos):
        name = info.name if info and info.name else column.name
        several = len(tables) > 1 and info is not None and info.table
        names[column.name] = Column(f"{info.table}.{name}" if info and several else name)
    text = render(substitute(part, names) or part)
    return {"alias": ",".join(tables), "at": "after_join", "predicate": text}


def _joins_below(operator: ops.Operator) -> bool:
    """Tells whether an operator's rows come from a join in the same phase of the task."""
    below = ops.reachable(
        operator.parents, lambda each: [] if isinstance(each, ops.ReduceSink) else each.parents
    )
    return any(isinstance(each, ops.Join) for each in below)


def _in_mapper(operator: ops.Operator) -> bool:
    while operator.parents:
        operator = operator.parents[0]
        if isinstance(operator, ops.ReduceSink):
            return False
    return isinstance(operator, ops.TableScan)
