"""Converts Thrift tables and partitions to those of the planner and the local task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_hive_opt.metastores.partitions import Partition, value_of
from airflow_hive_opt.statement.catalog import Buckets, Column, Table
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS

PROJECTED = "projection.enabled"
"""A table's parameter: if ``true``, Athena computes the partitions, and the metastore has none."""
_PROVIDER = "spark.sql.sources.provider"
_SPARK_SCHEMA = "spark.sql.sources.schema"
_PLACEHOLDER = [("col", "array<string>")]
_FORMATS = ("parquet", "orc", "avro", "rcfile", "sequencefile", "text")
_SPARK_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def table_of(hive: Any) -> Table:
    """Converts a Thrift ``Table`` to the planner's table.

    If Hive can't represent a table's columns, Spark stores them in a table property.
    """
    parameters = hive.parameters or {}
    storage = hive.sd
    partition_columns = tuple(_column(field) for field in hive.partitionKeys or ())
    columns = tuple(_column(field) for field in storage.cols or ())
    provider = parameters.get(_PROVIDER, "hive").lower()
    if [(column.name, column.type) for column in columns] == _PLACEHOLDER:
        columns = _spark_columns(parameters, partition_columns) or columns
    return Table(
        name=f"{hive.dbName}.{hive.tableName}".lower(),
        columns=columns,
        partition_columns=partition_columns,
        total_bytes=statistic(parameters, "totalSize"),
        partitions_in_metastore=parameters.get(PROJECTED, "").lower() != "true"
        and provider not in LAKE_FORMATS
        and (provider == "hive" or parameters.get("spark.sql.partitionProvider") == "catalog"),
        buckets=_buckets(storage),
        rows=statistic(parameters, "numRows"),
        files=statistic(parameters, "numFiles"),
        format=_format(parameters, storage),
        view=hive.viewExpandedText or None,
        location=storage.location or None,
    )


def partition_of(hive: Any) -> Partition:
    """Converts a Thrift ``Partition`` to the local task's partition."""
    parameters = hive.parameters or {}
    return Partition(
        tuple(value_of(text) for text in hive.values),
        hive.sd.location if hive.sd else None,
        statistic(parameters, "numRows"),
        statistic(parameters, "totalSize"),
    )


def _column(field: Any) -> Column:
    return Column(field.name.lower(), field.type.lower())


def statistic(parameters: Mapping[str, str], name: str) -> int | None:
    """Hive's statistic, or else Spark's, or ``None``; -1 and 0 mean that it is not known."""
    for key in (name, f"spark.sql.statistics.{name}"):
        text = parameters.get(key, "")
        if text.isdigit() and int(text) > 0:
            return int(text)
    return None


def _format(parameters: Mapping[str, str], storage: Any) -> str:
    provider = parameters.get(_PROVIDER, "hive").lower()
    if provider != "hive":
        return provider
    reader = (storage.inputFormat or "").lower()
    return next((name for name in _FORMATS if name in reader), "")


def _buckets(storage: Any) -> Buckets | None:
    if not storage.bucketCols or (storage.numBuckets or 0) < 1:
        return None
    return Buckets(
        tuple(name.lower() for name in storage.bucketCols),
        storage.numBuckets,
        tuple((key.col.lower(), "asc" if key.order else "desc") for key in storage.sortCols or ()),
    )


def _spark_columns(
    parameters: Mapping[str, str], partition_columns: tuple[Column, ...]
) -> tuple[Column, ...]:
    text = parameters.get(_SPARK_SCHEMA)
    if text is None:  # Spark splits a long one into parts
        count = int(parameters.get(f"{_SPARK_SCHEMA}.numParts", 0))
        text = "".join(parameters[f"{_SPARK_SCHEMA}.part.{part}"] for part in range(count))
    partitioned = {column.name for column in partition_columns}
    fields = json.loads(text)["fields"] if text else ()
    return tuple(
        Column(field["name"].lower(), _spark_type(field))
        for field in fields
        if field["name"].lower() not in partitioned
    )


def _spark_type(field: Mapping[str, Any]) -> str:
    exact = field.get("metadata", {}).get("__CHAR_VARCHAR_TYPE_STRING")
    return str(exact or _type_text(field["type"])).lower()


def _type_text(type_: Any) -> str:
    """The Hive type for a type of Spark's JSON schema.

    >>> _type_text({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    if isinstance(type_, str):
        return _SPARK_TYPES.get(type_, type_)
    if type_["type"] == "array":
        return f"array<{_type_text(type_['elementType'])}>"
    if type_["type"] == "map":
        return f"map<{_type_text(type_['keyType'])},{_type_text(type_['valueType'])}>"
    if type_["type"] == "struct":
        fields = (f"{field['name']}:{_type_text(field['type'])}" for field in type_["fields"])
        return f"struct<{','.join(fields)}>"
    return _type_text(type_["sqlType"])  # a user-defined type over another
