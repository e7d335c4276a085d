"""What Spark's description of a table means for the planner, however it was read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.sql.types import StructType

from airflow_hive_opt.metastores.hive_tables import PROJECTED, own_format
from airflow_hive_opt.metastores.partitions import Partition, value_of
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructField

_EXACT_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
NOT_FOUND = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""The conditions of Spark's errors for a name that does not exist."""


def description_of(session: SparkSession, what: str) -> dict[str, Any]:
    """What DESCRIBE AS JSON says of a table or view, or of a table's partition, named in SQL.

    Needs Spark 4. Raises Spark's errors.
    """
    ((text,),) = session.sql(f"DESCRIBE TABLE EXTENDED {what} AS JSON").collect()
    found: dict[str, Any] = json.loads(text)
    return found


def location_of(metadata: Any) -> str | None:
    """The location in the metastore of a table that the JVM describes."""
    found = str(metadata.storage().locationUri().toString())
    return unquote(found[len("Some(") : -1]) if found.startswith("Some(") else None


MANAGED = "spark.sql.hive.manageFilesourcePartitions"
"""If it is false, Spark lists the folders of its own tables instead of asking the metastore."""


def has_partitions_in_metastore(session: SparkSession, metadata: Any) -> bool:
    """Whether the metastore has the partitions of a table that the JVM describes.

    It does not if the table's format or Athena's partition projection computes them, or if
    :data:`MANAGED` is false. A format that keeps its own list of files may have more partitions
    than the metastore.
    """
    properties = metadata.properties()
    if properties.contains(PROJECTED) and str(properties.apply(PROJECTED)).lower() == "true":
        return False
    provider = provider_of(metadata)
    if provider in LAKE_FORMATS:
        return False
    if provider == "hive":
        return True
    return bool(metadata.tracksPartitionsInCatalog()) and session.conf.get(MANAGED) == "true"


def is_transactional(metadata: Any) -> bool:
    """Whether Hive's transactions decide which files of a table count that the JVM describes."""
    # the metastore itself has the property's name in lower case
    return str(metadata.properties().get("transactional").toString()).lower() == "some(true)"


def provider_of(metadata: Any) -> str:
    """The provider of a table that the JVM describes, in lower case; empty for a view."""
    provider = metadata.provider()
    return str(provider.get()).lower() if provider.isDefined() else ""


def partitions_in(text: str, table: Table) -> list[Partition]:
    """The partitions in the JSON of Spark's own objects.

    A location is the metastore's path, not Spark's URI for it.
    """
    partitions = []
    for part in json.loads(text):
        values = {name.lower(): value for name, value in part["spec"].items()}
        location, stats = part["storage"]["locationUri"], part["stats"] or {}
        partitions.append(
            Partition(
                tuple(value_of(values[column.name]) for column in table.partition_columns),
                None if location is None else unquote(location),
                stats.get("rowCount"),
                stats.get("sizeInBytes"),
            )
        )
    return partitions


def is_read_by_serde(session: SparkSession, metadata: Any) -> bool:
    """Whether Spark reads a table that the JVM describes with Hive's serde."""
    if provider_of(metadata) != "hive":
        return False
    serde = metadata.storage().serde()
    return read_by_serde(session, str(serde.get()) if serde.isDefined() else "")


def read_by_serde(session: SparkSession, serde: str) -> bool:
    """Whether Spark uses the serde itself for a Hive table that has it, not its own reader."""
    own = own_format(serde)
    return not own or session.conf.get(f"spark.sql.hive.convertMetastore{own.title()}") != "true"


def columns_in(schema: StructType) -> list[Column]:
    """The columns of a schema, in lower case."""
    return [Column(field.name.lower(), type_of(field)) for field in schema.fields]


def columns_of(schema: Any) -> list[Column]:
    """The columns of a schema of the JVM, in lower case."""
    return columns_in(StructType.fromJson(json.loads(schema.json())))


def sized(full: str, execution: Any) -> Table:
    """A table or view with Spark's own size estimate; very large without statistics."""
    size = int(execution.optimizedPlan().stats().sizeInBytes())
    return Table(full, tuple(columns_of(execution.analyzed().schema())), total_bytes=size)


def type_of(field: StructField) -> str:
    """The column's type by Hive's name, in lower case, CHAR and VARCHAR with their lengths."""
    exact = (field.metadata or {}).get(_EXACT_TYPE)
    return str(exact or field.dataType.simpleString()).lower()
