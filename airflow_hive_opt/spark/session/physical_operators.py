"""The physical operators of Spark's plans, including those of adaptive execution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.spark_compat import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def operators_of(frame: DataFrame) -> Iterator[tuple[str, Any]]:
    """The operators of a frame's plan, whether it has run or not; see :func:`operators`."""
    yield from operators(frame._jdf.queryExecution().executedPlan())


def leaves(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yields those of :func:`operators` that have no children, such as scans.

    A large plan has many operators, and every look at one is a call of the JVM.
    """
    waiting: list[Any] = [plan]
    while waiting:
        plan = waiting.pop()
        for tree in (plan, *items(plan.subqueriesAll())):  # subqueries of subqueries too
            for leaf in items(tree.collectLeaves()):
                kind = leaf.getClass().getSimpleName()
                if (inner := _inner(kind, leaf)) is None:
                    yield kind, leaf
                else:
                    waiting.append(inner)


def operators(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yields a physical plan of the JVM and all operators below it, each with its class name."""
    waiting: list[Any] = [plan]
    while waiting:
        plan = waiting.pop()
        kind = plan.getClass().getSimpleName()
        if (inner := _inner(kind, plan)) is not None:
            waiting.append(inner)
        elif kind != "ReusedExchangeExec":
            waiting += [*items(plan.children()), *items(plan.subqueries())]
        yield kind, plan


def _inner(kind: str, operator: Any) -> Any:
    """The plan in an operator that has it, but not as its child; else ``None``."""
    if kind == "AdaptiveSparkPlanExec":
        return operator.executedPlan()
    if kind.endswith("QueryStageExec"):
        return operator.plan()
    if kind == "CommandResultExec":  # a statement that session.sql has run
        return operator.commandPhysicalPlan()
    return None
