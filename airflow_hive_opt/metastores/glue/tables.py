"""Converts Glue's tables and partitions to those of the planner and the local task."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from airflow_hive_opt.metastores.hive_tables import statistic, table_of
from airflow_hive_opt.metastores.partitions import Partition, value_of
from airflow_hive_opt.statement.catalog import Table


def glue_table(found: Mapping[str, Any]) -> Table:
    """Converts a ``Table`` of GetTable.

    Athena, crawlers and Glue jobs leave out fields that Hive always has.
    """
    storage = found.get("StorageDescriptor") or {}
    # of a table in one of Spark's own formats, whose location may be a placeholder
    path = ((storage.get("SerdeInfo") or {}).get("Parameters") or {}).get("path")
    return table_of(
        SimpleNamespace(
            dbName=found["DatabaseName"],
            tableName=found["Name"],
            parameters=found.get("Parameters"),
            partitionKeys=_fields(found.get("PartitionKeys")),
            viewExpandedText=found.get("ViewExpandedText"),
            sd=SimpleNamespace(
                cols=_fields(storage.get("Columns")),
                location=path or storage.get("Location"),
                inputFormat=storage.get("InputFormat"),
                bucketCols=storage.get("BucketColumns"),
                numBuckets=storage.get("NumberOfBuckets"),
                sortCols=[
                    SimpleNamespace(col=one["Column"], order=one["SortOrder"])
                    for one in storage.get("SortColumns") or ()
                ],
            ),
        )
    )


def glue_partition(found: Mapping[str, Any]) -> Partition:
    """Converts a ``Partition`` of GetPartitions or BatchGetPartition."""
    parameters = found.get("Parameters") or {}
    return Partition(
        tuple(value_of(text) for text in found["Values"]),
        (found.get("StorageDescriptor") or {}).get("Location"),
        statistic(parameters, "numRows"),
        statistic(parameters, "totalSize"),
    )


def _fields(columns: Any) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(name=column["Name"], type=column.get("Type") or "string")
        for column in columns or ()
    ]
