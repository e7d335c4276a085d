"""Runs functions in other threads as if they ran in the caller's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Result = TypeVar("_Result")


def in_session(session: SparkSession, function: Callable[[], _Result]) -> Callable[[], _Result]:
    """The function, to run in another thread with this thread's scheduler pool, job group and tags.

    They are properties of a thread of the JVM, so Spark Connect has none. PySpark's own
    ``inheritable_thread_target`` differs between versions.
    """
    if is_remote(session):
        return function
    context: Any = session.sparkContext._jsc.sc()
    properties = context.getLocalProperties().clone()

    def inherited() -> _Result:
        context.setLocalProperties(properties)
        return function()

    return inherited
