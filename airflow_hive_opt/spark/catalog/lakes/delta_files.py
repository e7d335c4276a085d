"""The data files of a version of a Delta table, with the values of their partitions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import unquote

from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.session.spark_compat import active

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PHYSICAL = "delta.columnMapping.physicalName"


class OtherVersion(Exception):
    """The table has another version by now; the message says so."""


def names_in_files(metadata: Any) -> dict[str, str]:
    """The columns' names, each with its name in the data files; ``metadata`` is the JVM's."""
    fields = json.loads(str(metadata.schemaString()))["fields"]
    is_mapped = str(metadata.columnMappingMode().name()) != "none"
    return {
        str(each["name"]): str(each["metadata"][_PHYSICAL] if is_mapped else each["name"])
        for each in fields
    }


def file_partitions(
    session: SparkSession, table: str, version: str, columns: Sequence[str]
) -> dict[str, tuple[Optional[str], ...]]:
    """The values of partition columns as text, by the file's path in the table's folder.

    ``columns`` are partition columns in lower case. Raises :class:`OtherVersion` if ``version`` is
    not the current one, and Spark's errors.
    """
    from pyspark.sql import DataFrame

    snapshot = load(session, Place.of(table)).initialSnapshot()
    if str(snapshot.version()) != version:
        raise OtherVersion(f"{table} has another version than {version} by now")
    names = {
        name.lower(): physical for name, physical in names_in_files(snapshot.metadata()).items()
    }
    values = [f"partitionValues[{_literal(names[column])}]" for column in columns]
    with active(session):
        rows = DataFrame(snapshot.allFiles().toDF(), session).selectExpr("path", *values).collect()
    # an empty text is NULL
    return {unquote(row[0]): tuple(value or None for value in row[1:]) for row in rows}


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
