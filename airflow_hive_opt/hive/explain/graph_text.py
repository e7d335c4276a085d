"""Operator graphs as indented text and stages as a mermaid graph."""

from __future__ import annotations

from airflow_hive_opt.hive.compiler import HivePlan
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.render import render


def draw(graph: ops.OperatorGraph) -> str:
    """Returns the graph as text, from its scans to its sinks; children are indented.

    The operators after a join are drawn once, under its first input.
    """
    lines: list[str] = []
    seen: set[int] = set()

    def visit(operator: ops.Operator, depth: int) -> None:
        lines.append("  " * depth + label(operator))
        if id(operator) in seen:
            return
        seen.add(id(operator))
        for child in operator.children:
            visit(child, depth + 1)

    for scan in graph.scans:
        visit(scan, 0)
    return "\n".join(lines)


def label(operator: ops.Operator) -> str:
    """Returns an operator as one line."""
    name = operator.short_name
    if isinstance(operator, ops.TableScan):
        return f"{name} {operator.alias}".rstrip()
    if isinstance(operator, ops.Filter):
        return f"{name} {' AND '.join(_part(part) for part in operator.predicate)}"
    if isinstance(operator, ops.ReduceSink):
        keys = ", ".join(render(key) for key in operator.keys)
        return f"{name} {keys}".rstrip()
    if isinstance(operator, ops.MapJoin):
        kinds = ", ".join(condition.kind for condition in operator.conditions)
        big = operator.aliases[operator.big][0]
        return f"{operator.kind.upper()} {kinds} big {big}"
    if isinstance(operator, ops.Join):
        return f"{name} {', '.join(condition.kind for condition in operator.conditions)}"
    if isinstance(operator, ops.GroupBy):
        keys = ", ".join(render(key) for key in operator.keys)
        return f"{name} {operator.mode} {keys}".rstrip()
    if isinstance(operator, ops.Limit):
        return f"{name} {operator.count}"
    if isinstance(operator, ops.FileSink):
        return f"{name} {operator.table or ''}".rstrip()
    if isinstance(operator, ops.LateralViewJoin):
        return f"{name} {operator.alias}"
    if isinstance(operator, ops.UserTableFunction):
        return f"{name} {operator.function}"
    if isinstance(operator, ops.Script):
        return f"{name} {operator.script}"
    return name


def _part(expression: object) -> str:
    text = render(expression)  # type: ignore[arg-type]
    return text.replace(" IS NOT NULL", " is not null") if text.endswith(" IS NOT NULL") else text


def mermaid(plan: HivePlan) -> str:
    """Returns the stages as a mermaid flowchart. Dotted arrows lead to a Conditional's branches."""
    lines = ["flowchart TD"]
    for task in plan.stages:
        joins = ", ".join(
            f"{join.kind if isinstance(join, ops.MapJoin) else 'Join'} "
            f"{' '.join(aliases[0] for aliases in join.aliases)}"
            for join in task.joins()
        )
        text = f"{task.name}: {task.kind}" + (f"<br/>{joins}" if joins else "")
        lines.append(f'  {_node(task.name)}["{text}"]')
    for task in plan.stages:
        lines += [f"  {_node(parent.name)} --> {_node(task.name)}" for parent in task.parents]
        lines += [f"  {_node(task.name)} -.-> {_node(each.name)}" for each in task.branches]
    return "\n".join(lines)


def _node(name: str) -> str:
    return name.replace("Stage-", "S")
