"""An INSERT into one partition stages its files in a folder of its own, as Hive's do.

Spark by itself writes a Hive table of Parquet or ORC through ``TABLE/_temporary/0``, which all jobs
at that table share unless their partitions are dynamic: the first to commit takes the others' files
and removes the folder under them. Days of a backfill that run at once then fail. Hive's own writer,
which is one setting away, gives every statement a staging folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.catalog import Catalog, Column
from airflow_hive_opt.planner.tables import table_of_a_partition
from airflow_hive_opt.spark.session_conf import conf_set, is_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_WRITES = "spark.sql.hive.convertInsertingPartitionedTable"


@contextmanager
def own_staging(session: SparkSession, catalog: Catalog, sql: str) -> Iterator[None]:
    """The session as such an INSERT wants it, for the block, unless the user says otherwise.

    Nor where the table has dates or timestamps: Hive counts ancient ones by another calendar, and
    Spark would read others than it wrote.
    """
    if is_set(session, SPARK_WRITES) or not _is_safe(table_of_a_partition(sql), catalog):
        yield
        return
    with conf_set(session, {SPARK_WRITES: "false"}):
        yield


def _is_safe(name: str | None, catalog: Catalog) -> bool:
    table = catalog.table(name) if name else None
    return table is not None and not any(map(_has_a_calendar, table.columns))


def _has_a_calendar(column: Column) -> bool:
    return "date" in column.type or "timestamp" in column.type
