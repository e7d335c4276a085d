"""Which of Spark's errors say that a statement is wrong, so that trying again gives the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.spark.session.spark_compat import condition_of

# Spark wraps what the metastore's client or the file system raises into an AnalysisException,
# with the class of the Java exception at the head of its message.
_WRAPPED = re.compile(r"\s*(\[\w+\]\s*)?(org\.apache\.(hadoop|thrift)|javax?)\.")
_ENVIRONMENT = ("PATH_NOT_FOUND",)
_NOT_PLANNED = "Error occurred during query planning"
_SYSTEM_ERROR = "58"  # the SQL standard's class of it
_SETTINGS = ("INVALID_CONF_VALUE", "CANNOT_MODIFY")
# Before Spark 4.0 the error of a wrong value has no condition.
_WRONG_SETTING = re.compile(r"(\[\w+\]\s*)?(spark\.\S+ should be |'.*' in spark\.\S+ is invalid)")


def objection_in(explained: Sequence[Sequence[object]]) -> AnalysisException | None:
    """Why an EXPLAIN, which raises nothing, could not plan its statement; ``None`` where it could.

    ``explained`` are its rows, a line each where it failed.

    >>> rows = [("Error occurred during query planning: ",), ("[NOPE] no such table",)]
    >>> str(objection_in(rows))
    '[NOPE] no such table'
    """
    head, *why = (str(row[0]) for row in explained)
    return AnalysisException("\n".join(why).strip()) if head.startswith(_NOT_PLANNED) else None


def is_refusal(error: BaseException) -> bool:
    """Whether Spark refuses the statement or a setting as it is written.

    A metastore or a storage that fails is no refusal, whichever class Spark raises for it; nor is a
    statement that fails on its data.
    """
    if not isinstance(error, PySparkException):
        return False
    condition = condition_of(error)
    if condition.startswith(_SETTINGS) or _WRONG_SETTING.match(str(error)):
        return True
    if not isinstance(error, AnalysisException) or condition.startswith(_ENVIRONMENT):
        return False
    if (error.getSqlState() or "").startswith(_SYSTEM_ERROR):
        return False
    return _WRAPPED.match(str(error)) is None
