"""Converts Glue's tables and partitions to those of the planner and the local task."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from airflow_hive_opt.metastores.hive_tables import partition_of
from airflow_hive_opt.metastores.partitions import Partition


def hive_table(found: Mapping[str, Any]) -> SimpleNamespace:
    """A ``Table`` of GetTable with the fields of Thrift's.

    Athena, crawlers and Glue jobs leave out fields that Hive always has.
    """
    return SimpleNamespace(
        dbName=found["DatabaseName"],
        tableName=found["Name"],
        tableType=found.get("TableType"),
        parameters=found.get("Parameters"),
        partitionKeys=_fields(found.get("PartitionKeys")),
        viewExpandedText=found.get("ViewExpandedText"),
        sd=_storage(found),
    )


def hive_partition(found: Mapping[str, Any]) -> SimpleNamespace:
    """Converts Glue's ``Partition`` to an object with the fields of Thrift's ``Partition``."""
    return SimpleNamespace(
        values=found["Values"], parameters=found.get("Parameters"), sd=_storage(found)
    )


def glue_partition(found: Mapping[str, Any]) -> Partition:
    """Converts a ``Partition`` of GetPartitions or BatchGetPartition."""
    return partition_of(hive_partition(found))


def _storage(found: Mapping[str, Any]) -> SimpleNamespace:
    storage = found.get("StorageDescriptor") or {}
    serde = storage.get("SerdeInfo") or {}
    return SimpleNamespace(
        cols=_fields(storage.get("Columns")),
        location=storage.get("Location"),
        inputFormat=storage.get("InputFormat"),
        serdeInfo=SimpleNamespace(
            serializationLib=serde.get("SerializationLibrary"),
            parameters=serde.get("Parameters"),
        ),
        bucketCols=storage.get("BucketColumns"),
        numBuckets=storage.get("NumberOfBuckets"),
        sortCols=[
            SimpleNamespace(col=one["Column"], order=one["SortOrder"])
            for one in storage.get("SortColumns") or ()
        ],
    )


def _fields(columns: Any) -> list[SimpleNamespace]:
    return [
        SimpleNamespace(name=column["Name"], type=column.get("Type") or "string")
        for column in columns or ()
    ]
