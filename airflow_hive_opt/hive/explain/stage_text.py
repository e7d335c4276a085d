"""EXPLAIN as Hive prints it: stage dependencies, then the operators of every stage."""

from __future__ import annotations

from airflow_hive_opt.hive.compiler import HivePlan
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.render import render
from airflow_hive_opt.hive.parser.syntax import Column
from airflow_hive_opt.hive.tasks import Task

_CONDITIONS = {
    "INNER": "Inner Join",
    "LEFT OUTER": "Left Outer Join",
    "RIGHT OUTER": "Right Outer Join",
    "FULL OUTER": "Outer Join",
    "LEFT SEMI": "Left Semi Join",
}
_STAGES = {
    "MapReduce": "Map Reduce",
    "LocalWork": "Map Reduce Local Work",
    "Conditional": "Conditional Operator",
    "Fetch": "Fetch Operator",
    "Move": "Move Operator",
    "Stats": "Stats-Aggr Operator",
}


def explain_text(plan: HivePlan) -> str:
    """Returns the plan as Hive's EXPLAIN prints it."""
    lines = ["STAGE DEPENDENCIES:"]
    lines += [f"  {_dependency(task)}" for task in plan.stages]
    lines += ["", "STAGE PLANS:"]
    for task in plan.stages:
        lines += [f"  Stage: {task.name}", *_stage(task), ""]
    return "\n".join(lines).rstrip()


def _dependency(task: Task) -> str:
    text = task.name
    if task.parents:
        text += f" depends on stages: {', '.join(parent.name for parent in task.parents)}"
    elif task.branch_of is None:
        text += " is a root stage"
    if task.branches:
        text += f" , consists of {', '.join(branch.name for branch in task.branches)}"
    if task.backup is not None:
        text += f" has a backup stage: {task.backup.name}"
    return text


def _stage(task: Task) -> list[str]:
    lines = [f"    {_STAGES[task.kind]}"]
    if task.kind == "LocalWork":
        lines.append("      Alias -> Map Local Operator Tree:")
        for scan in task.scans:
            lines.append(f"        {scan.path}")
            lines += _tree(scan, 10, "HashTable Sink Operator", set())
    elif task.kind == "MapReduce" and task.scans:
        lines.append("      Map Operator Tree:")
        seen: set[int] = set()
        for scan in task.mapped_scans():
            lines += _tree(scan, 10, "", seen)
        if task.reducer is not None:
            lines.append("      Reduce Operator Tree:")
            lines += _tree(task.reducer, 8, "", set())
        if task.local_scans():
            lines += ["      Local Work:", "        Map Reduce Local Work"]
    elif task.kind == "Fetch":
        lines += ["      limit: -1", "      Processor Tree:"]
        for scan in task.scans:
            lines += _tree(scan, 8, "", set())
        if not task.scans:
            lines.append("        ListSink")
    return lines


def _tree(operator: ops.Operator, indent: int, stop: str, seen: set[int]) -> list[str]:
    """Returns an operator and the operators after it in the same phase.

    If ``stop`` is not empty, the tree ends at a map join, which prints as ``stop``.
    """
    space = " " * indent
    if stop and isinstance(operator, ops.MapJoin):
        keys = [f"{space}    {tag} {_list(keys)}" for tag, keys in enumerate(operator.keys)]
        return [f"{space}{stop}", f"{space}  keys:", *keys]
    lines = [f"{space}{_title(operator)}"]
    if id(operator) in seen:
        return [f"{lines[0]} (see above)"]
    seen.add(id(operator))
    lines += [f"{space}  {detail}" for detail in _details(operator)]
    if not isinstance(operator, ops.ReduceSink):
        for child in operator.children:
            lines += _tree(child, indent + 2, stop, seen)
    return lines


def _title(operator: ops.Operator) -> str:
    if isinstance(operator, ops.MapJoin) and operator.kind == "SortMergeBucketMapJoin":
        return "Sorted Merge Bucket Map Join Operator"
    return ops.NAMES[type(operator).__name__][1]


def _details(operator: ops.Operator) -> list[str]:
    if isinstance(operator, ops.TableScan):
        lines = [f"alias: {operator.alias}"] if operator.alias else []
        if operator.partitions is not None:
            lines.append(f"partitions: {len(operator.partitions)}")
        return lines
    if isinstance(operator, ops.Filter):
        parts = [render(part) for part in operator.predicate]
        text = " and ".join(f"({part})" for part in parts) if len(parts) > 1 else parts[0]
        return [f"predicate: {text} (type: boolean)"]
    if isinstance(operator, ops.Select) and operator.expressions is not None:
        return [f"expressions: {_list(operator.expressions.values())}", _outputs(operator)]
    if isinstance(operator, ops.ReduceSink):
        lines = [f"key expressions: {_list(operator.keys)}"] if operator.keys else []
        lines.append(f"sort order: {operator.order}")
        if operator.partition_keys:
            lines.append(f"Map-reduce partition columns: {_list(operator.partition_keys)}")
        return lines
    if isinstance(operator, ops.Join):
        return _join(operator)
    if isinstance(operator, ops.GroupBy):
        lines = []
        if operator.aggregates:
            lines.append(f"aggregations: {', '.join(map(render, operator.aggregates))}")
        if operator.keys:
            lines.append(f"keys: {_list(operator.keys)}")
        return [*lines, f"mode: {operator.mode}", _outputs(operator)]
    if isinstance(operator, ops.Limit):
        return [f"Number of rows: {operator.count}"]
    if isinstance(operator, ops.FileSink):
        return [f"table: {operator.table}"] if operator.table else ["compressed: false"]
    if isinstance(operator, ops.Script):
        return [f"command: {operator.script}"]
    if isinstance(operator, ops.UserTableFunction):
        return [f"function name: {operator.function}"]
    if isinstance(operator, ops.LateralViewJoin):
        return [_outputs(operator)]
    return []


def _join(join: ops.Join) -> list[str]:
    lines = ["condition map:"]
    lines += [
        f"     {_CONDITIONS[each.kind]} {each.left} to {each.right}" for each in join.conditions
    ]
    if join.filters:
        lines.append("filter predicates:")
        for tag in range(len(join.aliases)):
            parts = " and ".join(f"({render(part)})" for part in join.filters.get(tag, ()))
            lines.append(f"  {tag} {{{parts}}}" if parts else f"  {tag}")
    lines.append("keys:")
    lines += [f"  {tag} {_list(keys)}" for tag, keys in enumerate(join.keys)]
    lines.append(_outputs(join))
    if join.residual:
        parts = " and ".join(f"({render(part)})" for part in join.residual)
        lines.append(f"residual filter predicates: {{{parts}}}")
    if not isinstance(join, ops.MapJoin) and join.order and join.order[-1] != len(join.order) - 1:
        lines.append(f"Streamed Input: {join.order[-1]}")
    if isinstance(join, ops.MapJoin):
        lines.append(f"Position of Big Table: {join.big}")
        if join.kind == "BucketMapJoin":
            lines.append("BucketMapJoin: true")
    return lines


def _outputs(operator: ops.Operator) -> str:
    return f"outputColumnNames: {', '.join(info.internal for info in operator.visible)}"


def _list(expressions: object) -> str:
    shown = []
    for expression in expressions:  # type: ignore[attr-defined]
        kind = f" (type: {expression.type})" if isinstance(expression, Column) else ""
        shown.append(f"{render(expression)}{kind}" if expression is not None else "?")
    return ", ".join(shown)
