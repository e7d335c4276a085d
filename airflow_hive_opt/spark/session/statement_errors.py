"""What an error of Spark means for a retry.

The statement may be wrong, so that a retry fails too, or it may have written before the error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException, UnknownException

from airflow_hive_opt.spark.session.spark_compat import condition_of

# Spark wraps errors of the metastore client and of the file system into an AnalysisException, whose
# message begins with the class of the Java exception.
_WRAPPED = re.compile(r"\s*(\[\w+\]\s*)?(org\.apache\.(hadoop|thrift)|javax?)\.")
_ENVIRONMENT = ("PATH_NOT_FOUND",)
# Whatever a task of an executor raises is in an error of Spark's.
_OF_SPARK = "org.apache.spark."
# Another writer was first, so this one has not committed.
_CONFLICTS = (
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ValidationException",
    "io.delta.exceptions.",
)
AFTER_COMMIT = ("DELTA_POST_COMMIT_HOOK_FAILED", "INTERNAL_ERROR", "_LEGACY_ERROR_TEMP_2070")
"""The conditions of errors of Spark's that may come during a commit or after it."""

# The optimizer's plan was not valid; Spark raises this before anything runs.
_INVALID_PLAN = "PLAN_VALIDATION_FAILED"
_NOT_PLANNED = "Error occurred during query planning"
_SYSTEM_ERROR = "58"  # the SQL standard's class for system errors
_DATA_EXCEPTION = "22"  # its class for values that an expression can't compute with
_SETTINGS = ("INVALID_CONF_VALUE", "CANNOT_MODIFY")
# Before Spark 4.0 the error for a wrong value has no condition.
_WRONG_SETTING = re.compile(r"(\[\w+\]\s*)?(spark\.\S+ should be |'.*' in spark\.\S+ is invalid)")


def objection_in(explained: Sequence[Sequence[object]]) -> AnalysisException | None:
    """Why Spark could not plan an EXPLAIN's statement; ``None`` if it could.

    EXPLAIN raises no error. ``explained`` are its rows; a failed EXPLAIN has one row for each line
    of the error.

    >>> rows = [("Error occurred during query planning: ",), ("[NOPE] no such table",)]
    >>> str(objection_in(rows))
    '[NOPE] no such table'
    """
    head, *why = (str(row[0]) for row in explained)
    return AnalysisException("\n".join(why).strip()) if head.startswith(_NOT_PLANNED) else None


def is_refusal(error: BaseException | None) -> bool:
    """Whether Spark refuses the statement or a setting as it is written.

    ``False`` for an error of a metastore or a storage, whatever class Spark raises for it, and for
    a statement that fails on its data.
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
    return not wraps_another(str(error))


def may_follow_commit(error: BaseException) -> bool:
    """Whether a statement's error may have come during its commit or after it.

    This is an unclear one, one of :data:`AFTER_COMMIT`, or the end of Spark's JVM.
    """
    if not isinstance(error, (PySparkException, Py4JError, ConnectionError)):
        return False
    # PySpark has classes for some of Java's errors only
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None:
        return isinstance(error, (UnknownException, Py4JError, ConnectionError))
    try:
        name, message = str(thrown.getClass().getName()), str(thrown.getMessage())
    except (Py4JError, ConnectionError):  # the JVM has ended
        return True
    return is_unclear(name, message) or message.startswith(tuple(f"[{x}]" for x in AFTER_COMMIT))


def is_unclear(java_class: str, message: str) -> bool:
    """Whether an error of this class, with this message, may have come after a commit.

    It is not one of Spark's classes: the metastore, the catalog or the storage does not answer.

    >>> is_unclear("java.io.IOException", "timed out")
    True
    >>> is_unclear("org.apache.spark.SparkException", "Job aborted")
    False
    >>> is_unclear("org.apache.spark.sql.AnalysisException", "org.apache.thrift.TException: gone")
    True
    """
    if java_class.startswith(_OF_SPARK):
        return wraps_another(message)
    return not java_class.startswith(_CONFLICTS)


def wraps_another(message: str) -> bool:
    """Whether the message of an ``AnalysisException`` is that of a Java error inside it.

    >>> wraps_another("[_LEGACY_ERROR_TEMP_3065] org.apache.thrift.TException: timed out")
    True
    >>> wraps_another("[TABLE_OR_VIEW_NOT_FOUND] no table org.apache.x")
    False
    """
    return _WRAPPED.match(message) is not None


def is_data_exception(error: BaseException) -> bool:
    """Whether Spark could not compute an expression: a cast that fails, a division by zero."""
    return isinstance(error, PySparkException) and (error.getSqlState() or "").startswith(
        _DATA_EXCEPTION
    )


def cannot_plan(error: BaseException) -> bool:
    """Whether Spark can't plan a text of this package, although it can plan the user's own.

    A partition's value may be compared in other places of the plan than in the user's text. A cast
    of it that fails is a data exception in the optimizer.
    """
    return is_refusal(error) or is_data_exception(error) or _INVALID_PLAN in str(error)
