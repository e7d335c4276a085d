"""Notices small tables that have changed since a worker has read them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.small_tables import SmallTable, digest_of_files
from airflow_hive_opt.metastores.partitions import digest_of_values
from airflow_hive_opt.spark.catalog.folder_files import entries
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.snapshots import current

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def changed_tables(
    session: SparkSession, catalog: SessionCatalog, descriptor: Descriptor
) -> list[str]:
    """The names of the small tables that have other files, partitions or snapshots now.

    Includes those whose folders can't be listed.
    """
    tables = [
        table.name for table in descriptor.small_tables if _has_changed(session, catalog, table)
    ]
    for read in descriptor.snapshots:
        now = best_effort(partial(current, session, read.table))
        if now is None or now.snapshot != read.snapshot:
            tables.append(read.table)
    return tables


def _has_changed(session: SparkSession, catalog: SessionCatalog, small: SmallTable) -> bool:
    if small.partitions is not None:
        table = catalog.table(small.name)
        if table is None or digest_of_values(catalog.partition_names(table)) != small.partitions:
            return True
    try:
        return any(_digest(session, location) != digest for location, digest in small.folders)
    except (Py4JJavaError, ValueError):
        return True  # Spark says what is wrong with a folder when it reads the keys


def _digest(session: SparkSession, location: str) -> str:
    """The digest of the files in a folder."""
    found = entries(session, location)
    return digest_of_files(
        (each.name, each.size, each.changed // 1000) for each in found if not each.is_folder
    )
