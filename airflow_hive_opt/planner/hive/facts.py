"""A Hive plan as the explain contract's JSON: stages, joins, filters, totals."""

from __future__ import annotations

from airflow_hive_opt.planner.hive.compiler import HivePlan
from airflow_hive_opt.planner.hive.operators import (
    Filter,
    Join,
    MapJoin,
    Operator,
    ReduceSink,
    TableScan,
)
from airflow_hive_opt.planner.hive.render import render
from airflow_hive_opt.planner.hive.tasks import Task, scans_below


def facts(plan: HivePlan) -> dict[str, object]:
    """``stages``, ``joins``, ``filters`` and the totals of the contract."""
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
        "joins": [join for task in plan.stages for join in _joins(task)],
        "filters": _filters(plan),
        "map_reduce": count(plan, "MapReduce"),
        "local_work": count(plan, "LocalWork"),
        "conditional": count(plan, "Conditional"),
    }


def count(plan: HivePlan, kind: str) -> int:
    """How many stages of a kind a plan has."""
    return sum(task.kind == kind for task in plan.stages)


def _joins(task: Task) -> list[dict[str, object]]:
    if task.kind != "MapReduce":
        return []
    return [
        {
            "stage": task.name,
            "phase": "map" if isinstance(join, MapJoin) else "reduce",
            "kind": join.kind if isinstance(join, MapJoin) else "Join",
            "conditions": [[each.kind, each.left, each.right] for each in join.conditions],
            "aliases": [aliases[0] for aliases in join.aliases],
            "tag_order": list(join.order),
            "big_alias": _big_alias(join),
        }
        for join in task.joins()
    ]


def _big_alias(join: Join) -> str | None:
    if not isinstance(join, MapJoin) or join.kind == "MapJoin":
        return None
    scans = scans_below(join.parents[join.big])
    return scans[0].path if scans else None


def _filters(plan: HivePlan) -> list[dict[str, str]]:
    listed: list[tuple[str, str, str]] = []
    for task in plan.stages:
        if task.kind not in ("MapReduce", "Fetch") or task.backup is not None:
            continue
        for operator in task.operators():
            if not isinstance(operator, Filter):
                continue
            below = _joins_below(operator)
            scans = scans_below(operator)
            for part in operator.predicate:
                if part in operator.generated:
                    continue
                if below:
                    listed.append((",".join(below), "after_join", render(part)))
                elif _in_mapper(operator):
                    for scan in scans:
                        if scan.path:
                            listed.append((scan.alias, "scan", render(part)))
    return [
        {"alias": alias, "at": place, "predicate": predicate} for alias, place, predicate in listed
    ]


def _joins_below(operator: Operator) -> list[str]:
    """The aliases of the joins in the same task that an operator's rows come from."""
    stack, seen = list(operator.parents), set()
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Join):
            return [alias for aliases in current.aliases for alias in aliases]
        if not isinstance(current, ReduceSink):
            stack.extend(current.parents)
    return []


def _in_mapper(operator: Operator) -> bool:
    while operator.parents:
        operator = operator.parents[0]
        if isinstance(operator, ReduceSink):
            return False
    return isinstance(operator, TableScan)
