"""Iceberg: a table keeps each file's partition and the lowest and highest value of its columns.

A condition on the source column of a partition transform, or on a column of the sort order,
therefore skips files, and Spark passes it on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.spark.catalog.lakes.iceberg_files import expression_of, planned_files
from airflow_hive_opt.spark.catalog.lakes.iceberg_layout import layout_of
from airflow_hive_opt.spark.catalog.lakes.indexed_format import (
    OWN_VALUES,
    DataFile,
    Identity,
    PartitionField,
)
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import provider_of
from airflow_hive_opt.spark.session.java_classes import java_class
from airflow_hive_opt.spark.session.spark_compat import rows_by_arrow
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote, quote_table
from airflow_hive_opt.statement.lake_formats import ICEBERG, WAP_BRANCH
from airflow_hive_opt.statement.types import TIMESTAMP, family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_PARTITION_VALUES = 10_000
"""The setting with which a session reads and writes a branch of Iceberg's tables."""


class Iceberg:
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.indexed_format.IndexedFormat`."""

    name = ICEBERG
    reads_paths = False
    plans_files = False
    has_branches = True

    def is_entry(self, metadata: Any) -> bool:
        """A table that Iceberg has made in the metastore has Hive as its provider."""
        if provider_of(metadata) == ICEBERG:
            return True
        kind = metadata.properties().get("table_type")
        return bool(kind.isDefined()) and str(kind.get()).lower() == ICEBERG

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """Whether the class of Spark's table is Iceberg's."""
        return str(loaded.getClass().getName()) == "org.apache.iceberg.spark.source.SparkTable"

    def described(self, session: SparkSession, place: Place, table: Table, loaded: Any) -> Table:
        """The table; metadata tables such as ``snapshots`` have no data files to skip."""
        iceberg = loaded.table()
        gateway: Any = session.sparkContext._gateway
        if place.is_dotted or is_instance_of(
            gateway, iceberg, "org.apache.iceberg.BaseMetadataTable"
        ):
            return table
        snapshot = iceberg.currentSnapshot()
        size = "0" if snapshot is None else snapshot.summary().get("total-files-size")
        layout = layout_of(session._jvm, iceberg)
        is_version = _is_a_version(place, loaded)
        return replace(
            table,
            total_bytes=UNKNOWN_SIZE if size is None else int(size),
            provider=ICEBERG,
            clustered_by=layout.clustered_by,
            partitioned_by=layout.partitioned_by,
            bounded=tuple(column.name for column in table.columns),
            partition_fields=() if is_version else layout.partition_fields,
            partition_times=() if is_version else layout.partition_times,
        )

    def of_entry(self, session: SparkSession, table: Table) -> Table:  # noqa: ARG002
        """The table unchanged: without Iceberg's catalog Spark can't read it."""
        return table

    def most_values(self, session: SparkSession, table: Table, column: str) -> int:
        """Iceberg compares a list of more than 200 values with partition values only.

        In 1.11 a list of texts fails at a partition of NULL. Spark also applies such a list to
        columns of other tables that are equal, so it must not be one.
        """
        types = {found.name: found.type for found in table.columns}
        if types.get(column) == "string" and self._lists_of_texts_fail(session, table):
            return 1
        return _MOST_PARTITION_VALUES if column.lower() in table.partitioned_by else 200

    def expression(
        self,
        table: Table,  # noqa: ARG002
        filters: Sequence[tuple[str, RowFilter]],
    ) -> str | None:
        """The conditions in Iceberg's JSON."""
        return expression_of(filters)

    def counted(
        self, session: SparkSession, loaded: Any, found: PlannedFiles
    ) -> PlannedFiles | None:
        """The files by Iceberg's own planning, of the current snapshot only."""
        if _reads_a_version(session, Place.of(found.scan.table), loaded):
            return None  # its name is that of a snapshot or branch
        return planned_files(session._jvm, loaded.table(), found)

    def all_files(self, loaded: Any) -> tuple[int, int] | None:
        """Those of the snapshot's summary."""
        snapshot = loaded.table().currentSnapshot()
        if snapshot is None:
            return 0, 0
        summary = snapshot.summary()
        found = summary.get("total-data-files"), summary.get("total-files-size")
        return None if None in found else (int(found[0]), int(found[1]))

    def version(self, session: SparkSession, place: Place, loaded: Any) -> str | None:
        """The ID of the current snapshot."""
        if _reads_a_version(session, place, loaded):
            return None
        snapshot = loaded.table().currentSnapshot()
        return None if snapshot is None else str(snapshot.snapshotId())

    def table_id(self, loaded: Any) -> str:  # noqa: ARG002
        """Empty: the IDs of snapshots are random."""
        return ""

    def state(self, loaded: Any) -> Mapping[str, str]:
        """The file of the current metadata: a renamed column makes no snapshot."""
        metadata = loaded.table().operations().current().metadataFileLocation()
        return {} if metadata is None else {"metadata": str(metadata)}

    def as_of(self, version: str) -> str:
        """The clause with the snapshot's ID."""
        return f"VERSION AS OF {version}"

    def has_columns_of(self, session: SparkSession, loaded: Any, version: str) -> bool:  # noqa: ARG002
        """Whether the schema has not changed since the current snapshot."""
        iceberg = loaded.table()
        return bool(iceberg.currentSnapshot().schemaId() == iceberg.schema().schemaId())

    def identity(self, session: SparkSession, loaded: Any) -> Identity:
        """The UUID of the table, and the field IDs of its columns."""
        table = loaded.table()
        parser = java_class(session._jvm, "org.apache.iceberg.SchemaParser")
        text = parser.toJson(table.schema())
        fields = json.loads(str(text))["fields"]
        uuid = str(table.operations().current().uuid())
        return Identity.of(uuid, ((str(each["name"]), str(each["id"])) for each in fields))

    def partition_fields(self, table: Table) -> Sequence[PartitionField]:
        """Fields with a column's own values, and those that count years, months, days or hours."""
        own = [(source, name, OWN_VALUES) for source, name in table.partition_fields]
        fields = [
            PartitionField(column, name, transform)
            for column in table.columns
            for source, name, transform in (*own, *table.partition_times)
            if source == column.name
        ]
        return [field for field in fields if _gives_conditions(field)]

    def has_only(self, loaded: Any, fields: Collection[PartitionField]) -> bool:
        """Whether the table has had one spec, which has no other fields."""
        table = loaded.table()
        return int(table.specs().size()) == 1 and table.spec().fields().size() == len(fields)

    def data_files(
        self,
        session: SparkSession,
        table: Table,
        version: str,
        table_id: str,  # noqa: ARG002
        fields: Sequence[PartitionField],
    ) -> dict[str, DataFile]:
        """The files in the metadata table ``data_files``; Spark reads all manifests for it."""
        selected = ["file_path", "file_size_in_bytes", *(_as_text(field) for field in fields)]
        rows = session.sql(
            f"SELECT {', '.join(selected)} FROM {quote_table(table.name)}.data_files "
            f"VERSION AS OF {int(version)}"
        )
        return {row[0]: DataFile(row[2:], row[1]) for row in rows_by_arrow(rows)}

    def _lists_of_texts_fail(self, session: SparkSession, table: Table) -> bool:  # noqa: ARG002
        try:
            of_texts = java_class(session._jvm, "org.apache.iceberg.util.CharSequenceSet")
            of_texts.empty().contains(None)
        except Py4JError:  # a NullPointerException, or no such class
            return True
        return False


def _gives_conditions(field: PartitionField) -> bool:
    type_ = field.column.type
    if field.transform == OWN_VALUES:
        return family(type_) is not None or type_ == TIMESTAMP
    return type_ in ("date", TIMESTAMP)


def _as_text(field: PartitionField) -> str:
    """The field's value in a row of the table ``data_files``."""
    value = f"partition.{quote(field.name)}"
    if field.transform == "day":
        value = f"unix_date({value})"
    elif field.transform == OWN_VALUES and field.column.type == TIMESTAMP:
        value = f"unix_micros({value})"
    return f"CAST({value} AS STRING)"


def _reads_a_version(session: SparkSession, place: Place, loaded: Any) -> bool:
    """Whether the session reads a table otherwise than at its current snapshot."""
    return _is_a_version(place, loaded) or bool(session.conf.get(WAP_BRANCH, None))


def _is_a_version(place: Place, loaded: Any) -> bool:
    """Whether the name selects a branch, a tag or an older snapshot of the table.

    From Spark 4.1 on, any table has the ID of the snapshot at which it was loaded.
    """
    if loaded.branch() is not None:
        return True
    own = str(loaded.table().name()).rpartition(".")[2]
    return loaded.snapshotId() is not None and own.lower() != place.name.lower()
