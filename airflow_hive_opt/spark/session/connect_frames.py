"""Data frames of a Spark Connect session: their analysed plans, and their rows as local data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.session_conf import conf_set

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALL_FIELDS = {"spark.sql.debug.maxToStringFields": "1000000"}
_HEADING = re.compile(r"^== (?:Parsed|Analyzed|Optimized) Logical Plan ==$", re.MULTILINE)
# The text does not say whether a user's function in a view is deterministic. Two functions of
# Spark's own are not deterministic either, in addition to those that the planner knows. A variable
# of the session may have another value in the session that runs the join.
_NOT_TOLD = re.compile(
    r"\bvariablereference\(|\bHive\w+#|\b(?:Scala|Python)?(?:UDF|UDAF|Aggregator)\w*\(|\btry_reflect\(|\baes_?encrypt\(",
    re.IGNORECASE,
)
# An operator that runs Python. The optimizer makes it for the calls in other operators, which the
# text of the analysed plan shows like names of columns.
_RUNS_PYTHON = re.compile(r"^[ :+*()\d-]*\w*(?:Python|Pandas|InArrow)", re.MULTILINE)


def analyzed_plan(frame: DataFrame) -> tuple[str | None, bool]:
    """Spark's analysed plan as text, views included, and whether the query runs Python.

    The text is ``None`` if it is not complete: it contains user-defined functions of Scala, Java or
    Hive, or is redacted.
    """
    with conf_set(frame.sparkSession, _ALL_FIELDS):
        text = str(frame._explain_string(extended=True))  # type: ignore[operator]
    parts = _HEADING.split(text)
    if len(parts) != 4 or "redacted" in text or _NOT_TOLD.search(parts[2]):
        return None, False
    return parts[2], _RUNS_PYTHON.search(parts[3]) is not None


def plan_metrics(frame: Any) -> tuple[tuple[str, dict[str, int]], ...]:
    """The operators of the plan that a frame has run, by name, each with the server's metrics.

    Empty if the server has sent none, as for statements that write.
    """
    info = frame.executionInfo
    if info is None or info.metrics is None:
        return ()
    _, operators = info.metrics.extract_graph()
    return tuple(
        (found.name, {metric.name: int(metric.value) for metric in found.metrics})
        for found in operators.values()
    )


def local_relation(session: SparkSession, frame: DataFrame) -> tuple[DataFrame, int, int]:
    """The frame's rows as local data, their number, and their size in bytes.

    The rows travel as Arrow in both directions and never become Python values, which would change
    some types. Raises ``ValueError`` for types that Arrow can't represent.
    """
    try:
        table = frame.toArrow()
        return session.createDataFrame(table, schema=frame.schema), table.num_rows, table.nbytes
    except (TypeError, NotImplementedError) as error:  # Arrow's errors for unsupported types
        raise ValueError(f"these rows can't be sent as Arrow: {error}") from error
