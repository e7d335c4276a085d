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


def _after(rule: Callable[[OperatorGraph], None], sql: str, settings: dict[str, str]) -> object:
    """Returns the drawing, the filters and the joins of the graph right after ``rule``."""
    found: dict[str, object] = {}

    def watch(name: str, graph: OperatorGraph) -> None:
        if name == rule.__name__:
            found["tree"] = graph_text.draw(graph)
            found["filters"] = [
                f"{scan.alias}: {render(part)}"
                for operator in graph.operators()
                if isinstance(operator, Filter)
                for part in operator.predicate
                if part not in operator.generated
                for scan in scans_below(operator)
            ]
            found["joins"] = [
                ", ".join(f"{each.kind} {each.left} {each.right}" for each in join.conditions)
                + f", order {' '.join(map(str, join.order))}"
                for join in graph.joins()
            ]

    compile_statement(sql, CATALOG, Settings.of(settings), watch)
    return found


def tree_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> str:
    """Returns the drawing of Hive's operator graph right after ``rule``."""
    return str(_after(rule, sql, settings)["tree"])  # type: ignore[index]


def filters_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> None:
    """Prints the user's filters right after ``rule``, each with the alias of its scan."""
    print(f"[{', '.join(_quoted(_after(rule, sql, settings)))}]")


def _quoted(found: object) -> list[str]:
    return [f"'{text}'" for text in found["filters"]]  # type: ignore[index]


def joins_after(rule: Callable[[OperatorGraph], None], sql: str, **settings: str) -> object:
    """Returns the conditions and the input order of the joins right after ``rule``."""
    return _after(rule, sql, settings)["joins"]  # type: ignore[index]


def stages(sql: str, **settings: str) -> str:
    """Returns the kinds of Hive's stages."""
    plan = compile_statement(sql, CATALOG, Settings.of(settings))
    return ", ".join(task.kind for task in plan.stages)
