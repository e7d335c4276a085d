"""DataFusion: a table of the partitions to read, and a condition for tables that it opens itself.

Airflow's ``AnalyticsOperator`` is DataFusion.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hive_opt.engines import arrow
from airflow_hive_opt.engines.conditions import condition_of
from airflow_hive_opt.engines.files import OpenPath, open_uri
from airflow_hive_opt.engines.installed import check_installed
from airflow_hive_opt.engines.scan import PrunedScan
from airflow_hive_opt.engines.sql import quoted, sql_of, standard_literal
from airflow_hive_opt.engines.values import Value, microseconds

if TYPE_CHECKING:
    from datafusion import SessionContext


def register(
    context: SessionContext, name: str, scan: PrunedScan, open_path: OpenPath = open_uri
) -> None:
    """Makes the partitions to read the table ``name``, by PyArrow.

    Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    check_installed("datafusion")
    context.register_dataset(name, arrow.dataset(scan, open_path))


def condition(scan: PrunedScan) -> str:
    """A condition for WHERE, by which DataFusion leaves out files of tables that it opens itself.

    Raises :class:`~airflow_hive_opt.engines.scan.EngineError`.
    """
    return sql_of(condition_of(scan), literal, quoted)


def literal(value: Value) -> str:
    """A literal; the types of times are exact, so that they are compared without a cast.

    >>> print(literal(datetime(2024, 1, 31)))
    arrow_cast('2024-01-31T00:00:00', 'Timestamp(Microsecond, None)')
    """
    if not isinstance(value, datetime):
        return standard_literal(value)
    if value.tzinfo is None:
        return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, None)')"
    return f"arrow_cast({microseconds(value)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
