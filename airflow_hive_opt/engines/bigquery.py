"""BigQuery: the condition as text."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

from airflow_hive_opt.engines.conditions import condition_of
from airflow_hive_opt.engines.scan import PrunedScan
from airflow_hive_opt.engines.sql import clock_text, sql_of, standard_literal
from airflow_hive_opt.engines.values import Value

_ESCAPED = re.compile(r"[\x00-\x1f\x7f'`\\]")


def condition(scan: PrunedScan) -> str:
    """A condition for WHERE, for external and Iceberg tables.

    BigQuery reads a TIMESTAMP in the name of a folder as UTC, so the wall clock of a partition is
    written in UTC. Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    return sql_of(condition_of(scan), _literal, lambda name: f"`{_escaped(name)}`")


def _literal(value: Value, type_: str) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{clock_text(value)}+00:00'"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS BIGNUMERIC)"
    return f"'{_escaped(value)}'" if isinstance(value, str) else standard_literal(value, type_)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
