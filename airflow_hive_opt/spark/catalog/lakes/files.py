"""Counts the files of a table that a condition leaves, without the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.descriptor import PlannedFiles
from airflow_hive_opt.spark.catalog.lakes.formats import loaded_format
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def counted(session: SparkSession, found: PlannedFiles) -> PlannedFiles:
    """``found`` with the numbers that there are now; they are ``None`` if they are not known."""
    unknown = PlannedFiles(found.scan, found.expression, without_index=found.without_index)
    return best_effort(lambda: _counted(session, found)) or unknown


def all_files(session: SparkSession, table: str) -> tuple[int, int] | None:
    """The numbers of data files and of their bytes; ``None`` if they are not known.

    Raises Spark's errors.
    """
    loaded = load(session, Place.of(table))
    format_ = loaded_format(session, loaded)
    return None if format_ is None else format_.all_files(loaded)


def _counted(session: SparkSession, found: PlannedFiles) -> PlannedFiles | None:
    if found.expression is None:
        return None
    loaded = load(session, Place.of(found.scan.table))
    format_ = loaded_format(session, loaded)
    return None if format_ is None else format_.counted(session, loaded, found)
