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


def operators(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yields a physical plan of the JVM and all operators below it, each with its class name."""
    waiting: list[Any] = [plan]
    while waiting:
        plan = waiting.pop()
        kind = plan.getClass().getSimpleName()
        if kind == "AdaptiveSparkPlanExec":
            waiting.append(plan.executedPlan())
        elif kind.endswith("QueryStageExec"):
            waiting.append(plan.plan())
        elif kind == "CommandResultExec":  # a statement that session.sql has run
            waiting.append(plan.commandPhysicalPlan())
        elif kind != "ReusedExchangeExec":
            waiting += [*items(plan.children()), *items(plan.subqueries())]
        yield kind, plan
