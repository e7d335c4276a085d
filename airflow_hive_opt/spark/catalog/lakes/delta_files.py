"""The data files of a version of a Delta table, with their sizes and partition values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from airflow_hive_opt.spark.catalog.lakes.indexed_format import DataFile
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.session.spark_compat import active, items, rows_by_arrow
from airflow_hive_opt.statement.identifiers import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PHYSICAL = "delta.columnMapping.physicalName"


def names_in_files(metadata: Any) -> dict[str, str]:
    """The columns' names, each with its name in the data files; ``metadata`` is the JVM's."""
    fields = json.loads(str(metadata.schemaString()))["fields"]
    is_mapped = str(metadata.columnMappingMode().name()) != "none"
    return {
        str(each["name"]): str(each["metadata"][_PHYSICAL] if is_mapped else each["name"])
        for each in fields
    }


def data_files(
    session: SparkSession, table: str, version: str, table_id: str, columns: Sequence[str]
) -> dict[str, DataFile]:
    """The data files by their paths in the table's folder.

    ``columns`` are partition columns in lower case. Raises ``ValueError`` if the version does not
    have them, or is that of a table with another ID, and Spark's errors.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.functions import col

    # a query's plan has the snapshot of any version, and the same methods in all releases of Delta
    place = Place.of(table)
    name = ".".join(map(quote, (place.catalog, *place.namespace, place.name)))
    query = session.sql(f"SELECT * FROM {name} VERSION AS OF {int(version)}")
    plan: Any = query._jdf.queryExecution().analyzed()
    (leaf,) = items(plan.collectLeaves())
    snapshot = leaf.relation().location().getSnapshot()
    if str(snapshot.metadata().id()) != table_id:
        raise ValueError(f"{table} has been made again")
    partitioned = {str(each).lower() for each in items(snapshot.metadata().partitionColumns())}
    if missing := sorted(set(columns) - partitioned):
        raise ValueError(f"{table} is not partitioned by {missing[0]} in version {version}")
    names = {
        name.lower(): physical for name, physical in names_in_files(snapshot.metadata()).items()
    }
    with active(session):
        files = DataFrame(snapshot.allFiles().toDF(), session)
        values = [col("partitionValues")[names[column]] for column in columns]
        rows = rows_by_arrow(files.select("path", "size", *values))
    # an empty text is NULL
    return {
        unquote(row[0]): DataFile(tuple(value or None for value in row[2:]), row[1]) for row in rows
    }
