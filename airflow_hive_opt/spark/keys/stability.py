"""Whether a query returns the same rows each time, by Spark's analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.spark.session import connect_frames
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import plan_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operators of Spark's plan that may return other rows each time; a view can hide them.
_UNSTABLE_OPERATORS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Window"})


def is_stable(frame: DataFrame) -> bool:
    """Whether Spark's analysis, views and UDFs included, finds that the rows never change."""
    return analysed_operators(frame) is not None


def deterministic_plan(frame: DataFrame) -> str | None:
    """Spark's analysed plan as text; ``None`` if one of its expressions is not deterministic.

    Over Spark Connect the plan's text decides, because the protocol gives no other answer. It does
    not tell apart an expression that differs by day and one that differs by row.
    """
    if is_remote(frame):
        text = connect_frames.analyzed_plan(frame)
        return None if text is None or NOT_DETERMINISTIC.search(text) else text
    plan = frame._jdf.queryExecution().analyzed()
    return plan_text(plan) if plan.deterministic() else None


def analysed_operators(frame: DataFrame) -> tuple[str, ...] | None:
    """The operators of Spark's analysed plan, top down; ``None`` if its rows may differ."""
    text = deterministic_plan(frame)
    if text is None or NOT_DETERMINISTIC.search(text):
        return None
    operators = tuple(line.lstrip(" :+-").partition(" ")[0] for line in text.splitlines())
    return None if _UNSTABLE_OPERATORS.intersection(operators) else operators
