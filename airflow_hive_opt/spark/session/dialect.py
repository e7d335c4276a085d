"""Finds settings of a session under which it reads a statement differently from the planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.spark.session.session_conf import in_effect
from airflow_hive_opt.spark.session.spark_compat import is_known_setting
from airflow_hive_opt.statement.dialect import CONSECUTIVE_LITERALS, setting_that_differs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def why_read_differently(session: SparkSession, sql: str) -> str | None:
    """The setting that makes Spark read the statement differently; ``None`` without one."""
    # before Spark 4.0 there is no such setting, and Spark always joins literals
    joins_literals = not is_known_setting(session, CONSECUTIVE_LITERALS) or (
        (in_effect(session, CONSECUTIVE_LITERALS) or "").lower() == "true"
    )
    return setting_that_differs(sql, lambda name: in_effect(session, name), joins_literals)
