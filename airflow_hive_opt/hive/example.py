"""Functions that show the effect of one of Hive's rules, for the doctests of the rules."""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.hive.compiler import compile_statement
from airflow_hive_opt.hive.explain import graph_text
from airflow_hive_opt.hive.graph.operator_graph import Filter, OperatorGraph
from airflow_hive_opt.hive.parser.render import render
from airflow_hive_opt.hive.tasks import scans_below
from airflow_hive_opt.statement.example_catalog import CATALOG
from airflow_hive_opt.statement.settings import Settings

_Rule = Callable[[OperatorGraph], None]
_Show = Callable[[OperatorGraph], str]


def before_and_after(
    rule: _Rule, sql: str, settings: dict[str, str], show: _Show = graph_text.draw
) -> tuple[str, str]:
    """Returns the results of ``show`` for the graph right before and right after ``rule``.

    A rule that runs twice is shown where it first changes something.
    """
    runs = _runs(rule, sql, settings, show)
    return next((run for run in runs if run[0] != run[1]), runs[-1])


def _runs(
    rule: _Rule, sql: str, settings: dict[str, str], show: _Show
) -> tuple[tuple[str, str], ...]:
    """Returns the graph before and after each run of the rule."""
    steps: list[tuple[str, str]] = []

    def watch(name: str, graph: OperatorGraph) -> None:
        steps.append((name, show(graph)))

    compile_statement(sql, CATALOG, Settings.of(settings), watch)
    return tuple(
        (before, after)
        for (_, before), (name, after) in zip(steps, steps[1:])
        if name == rule.__name__
    )


def joins(graph: OperatorGraph) -> str:
    """Returns one line for each join: its conditions and the order of its inputs."""
    return "\n".join(
        ", ".join(f"{each.kind} {each.left} {each.right}" for each in join.conditions)
        + f", order {' '.join(map(str, join.order))}"
        for join in graph.joins()
    )


def _filters(graph: OperatorGraph) -> str:
    return "\n".join(
        f"{scan.alias}: {render(part)}"
        for operator in graph.operators()
        if isinstance(operator, Filter)
        for part in operator.predicate
        if part not in operator.generated
        for scan in scans_below(operator)
    )


def tree_after(rule: _Rule, sql: str, **settings: str) -> str:
    """Returns the drawing of Hive's operator graph right after ``rule``."""
    return _runs(rule, sql, settings, graph_text.draw)[-1][1]


def filters_after(rule: _Rule, sql: str, **settings: str) -> None:
    """Prints the user's filters right after ``rule``, each with the alias of its scan."""
    found = _runs(rule, sql, settings, _filters)[-1][1].splitlines()
    quoted = (f"'{each}'" for each in found)
    print(f"[{', '.join(quoted)}]")


def joins_after(rule: _Rule, sql: str, **settings: str) -> list[str]:
    """Returns the conditions and the input order of the joins right after ``rule``."""
    return _runs(rule, sql, settings, joins)[-1][1].splitlines()


def stages(sql: str, **settings: str) -> str:
    """Returns the kinds of Hive's stages."""
    plan = compile_statement(sql, CATALOG, Settings.of(settings))
    return ", ".join(task.kind for task in plan.stages)
