"""Trino, and Athena, which is Trino's: the condition as text."""

from __future__ import annotations

from datetime import datetime

from airflow_hive_opt.engines.conditions import condition_of
from airflow_hive_opt.engines.scan import PrunedScan
from airflow_hive_opt.engines.sql import clock_text, quoted, sql_of, standard_literal
from airflow_hive_opt.engines.values import Value


def condition(scan: PrunedScan) -> str:
    """A condition for WHERE, by which Trino prunes partitions and files.

    Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    return sql_of(condition_of(scan), _literal, quoted)


def _literal(value: Value, type_: str) -> str:
    if isinstance(value, datetime):
        zone = "" if value.tzinfo is None else " UTC"
        return f"TIMESTAMP '{clock_text(value)}{zone}'"
    return standard_literal(value, type_)
