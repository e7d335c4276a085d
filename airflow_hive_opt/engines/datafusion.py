"""DataFusion: a table of the partitions to read, and a condition for tables that it opens itself.

Airflow's ``AnalyticsOperator`` is DataFusion.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from airflow_hive_opt.engines import arrow
from airflow_hive_opt.engines.conditions import condition_of, may_be_null
from airflow_hive_opt.engines.files import OpenPath, open_uri
from airflow_hive_opt.engines.installed import check_installed, is_before
from airflow_hive_opt.engines.scan import EngineError, PrunedScan
from airflow_hive_opt.engines.sql import quoted, sql_of, standard_literal
from airflow_hive_opt.engines.values import Value, microseconds
from airflow_hive_opt.metastores.partition_names import partition_name

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

    A TIMESTAMP partition column must be a timestamp without time zone there, a wall clock. Raises
    :class:`~airflow_hive_opt.engines.scan.EngineError`, also if the partition of NULL is needed:
    DataFusion reads the name of its folder as a text. Releases before 55 read escaped characters in
    the names of folders as they are, so values with such characters are refused too.
    """
    check_installed("datafusion")
    found = condition_of(scan)
    if may_be_null(found):
        raise EngineError(
            f"DataFusion finds no NULL in the names of {scan.table}'s folders: "
            "use register() instead"
        )
    name = _escaped_name(scan)
    if name and is_before("datafusion", 55):
        raise EngineError(
            "DataFusion before 55 does not decode the names of folders, such as "
            f"{name} of {scan.table}: use register() instead"
        )
    return sql_of(found, literal, quoted)


def _escaped_name(scan: PrunedScan) -> str | None:
    """A part of a folder's name with escaped characters, if a pruned column has one."""
    for partition in scan.partitions or ():
        for column, text in zip(scan.columns, partition.values, strict=True):
            name = partition_name((column,), (text,))
            if column in scan.pruned_columns and name != f"{column}={text}":
                return name
    return None


def literal(value: Value, type_: str) -> str:
    """A literal; the types of times are exact, so that they are compared without a cast.

    >>> print(literal(datetime(2024, 1, 31), "timestamp"))
    arrow_cast('2024-01-31T00:00:00', 'Timestamp(Microsecond, None)')
    """
    if not isinstance(value, datetime):
        return standard_literal(value, type_)
    if value.tzinfo is None:
        return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, None)')"
    return f"arrow_cast({microseconds(value)}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
