"""Whether a query returns the same rows each time, by Spark's analysis.

Functions of SQL, Scala, Java and Hive are what they declare. Spark takes a Python function for
deterministic unless its author declares otherwise, which is easily forgotten. So the analysis says
whether a query calls Python functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.pruning.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.spark.session import connect_frames
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import active, calls_python, items, plan_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Operators of Spark's plan that may return other rows each time; a view can hide them.
_UNSTABLE_OPERATORS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Window"})
_AFTER_NAME = re.compile(r"[ \[]")  # as in "RelationV2[id#1, day#2] lake.shop.orders"


@dataclass(frozen=True)
class StablePlan:
    """Spark's analysed plan of a query whose rows never change, views and functions included.

    ``operators`` are those of the plan, top down. ``calls_python`` says that the rows depend on
    Python functions.
    """

    operators: tuple[str, ...]
    calls_python: bool


def stable_plan(frame: DataFrame) -> StablePlan | None:
    """The analysed plan of a query; ``None`` if its rows may differ each time."""
    text, python = _deterministic(frame)
    if text is None or NOT_DETERMINISTIC.search(text):
        return None
    operators = tuple(_AFTER_NAME.split(line.lstrip(" :+-"), 1)[0] for line in text.splitlines())
    return None if _UNSTABLE_OPERATORS.intersection(operators) else StablePlan(operators, python)


def is_stable(frame: DataFrame) -> bool:
    """Whether the rows of a query never change, and do not depend on Python functions."""
    plan = stable_plan(frame)
    return plan is not None and not plan.calls_python


def deterministic_plan(frame: DataFrame) -> str | None:
    """Spark's analysed plan as text; ``None`` if one of its expressions is not deterministic.

    Over Spark Connect the plan's text decides, because the protocol gives no other answer. It does
    not tell apart an expression that differs by day and one that differs by row.
    """
    return _deterministic(frame)[0]


def _deterministic(frame: DataFrame) -> tuple[str | None, bool]:
    """The text of :func:`deterministic_plan`, and whether the query calls Python functions."""
    if is_remote(frame):
        text, python = connect_frames.analyzed_plan(frame)
        return (None if text is None or NOT_DETERMINISTIC.search(text) else text), python
    plan = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic() or _casts_of_the_day(frame.sparkSession, plan):
        return None, False
    return plan_text(plan), calls_python(frame.sparkSession._jvm, plan)


def _casts_of_the_day(session: SparkSession, plan: Any) -> bool:
    """Whether Spark makes the current day or time of a text, such as ``d.day = 'today'``.

    Its optimizer does so for texts that are the same for all rows, before all other rules.
    """
    jvm: Any = session._jvm
    optimizer = jvm.org.apache.spark.sql.catalyst.optimizer
    with active(session):
        for each in (plan, *items(plan.subqueriesAll())):
            replaced = getattr(optimizer, "ReplaceExpressions$").__getattr__("MODULE$").apply(each)
            special = getattr(optimizer, "SpecialDatetimeValues$").__getattr__("MODULE$")
            if not special.apply(replaced).fastEquals(replaced):
                return True
    return False
