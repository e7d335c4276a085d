"""Whether a table's own list of partitions describes the rows that a statement reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.statement.lake_formats import WAP_BRANCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reads_current_metadata(session: SparkSession) -> bool:
    """Whether the session reads tables as their metadata lists them now.

    It does not if rows are cached, since the cache may be older. It does not if the session reads a
    branch of Iceberg's tables.
    """
    if is_remote(session) or session.conf.get(WAP_BRANCH, None):
        return False
    state: Any = session._jsparkSession.sharedState()
    return bool(state.cacheManager().isEmpty())
