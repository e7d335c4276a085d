"""Delta: a table keeps each file's partition values, and the bounds of its first columns.

Delta's own planning skips files by both. A condition on a partition column that is generated
follows from one on the columns from which it is generated.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.restriction.row_changes import values_condition
from airflow_hive_opt.spark.catalog.lakes.delta_files import data_files, names_in_files
from airflow_hive_opt.spark.catalog.lakes.indexed_format import DataFile, Identity, PartitionField
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import columns_of, provider_of
from airflow_hive_opt.spark.session.spark_compat import items, to_scala
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import DELTA
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_TABLE = "org.apache.spark.sql.delta.catalog.DeltaTableV2"
_PREPARED = "PreparedDeltaFileIndex"
_CLUSTERED = "clusteringColumns"
_GENERATED = "delta.generationExpression"
# ``delta.`/data/orders@v3` `` and ``@20260131000000000`` are older versions.
VERSION = re.compile(r"@(v\d+|\d{17})$")
MOST_VALUES = 1_000


class Delta:
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.indexed_format.IndexedFormat`."""

    name = DELTA
    reads_paths = True
    plans_files = True
    has_branches = False

    def is_entry(self, metadata: Any) -> bool:
        """Whether the entry's provider is Delta."""
        return provider_of(metadata) == DELTA

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """Whether the class of Spark's table is Delta's."""
        return str(loaded.getClass().getName()) == _TABLE

    def described(
        self,
        session: SparkSession,  # noqa: ARG002
        place: Place,  # noqa: ARG002
        table: Table,
        loaded: Any,
    ) -> Table | None:
        """The table; columns of liquid clustering are in ``clustered_by``, like sort columns."""
        if not loaded.tableExists():  # a path without a table
            return None
        snapshot = loaded.initialSnapshot()
        partitioned = tuple(
            str(each).lower() for each in items(snapshot.metadata().partitionColumns())
        )
        clustered = _clustering_columns(loaded.properties())
        sources = _sources_of_generated(snapshot, partitioned)
        return replace(
            table,
            total_bytes=_bytes(snapshot),
            provider=DELTA,
            clustered_by=tuple(dict.fromkeys((*partitioned, *clustered, *sources))),
            partitioned_by=partitioned,
            bounded=tuple(each.name for each in columns_of(snapshot.statCollectionLogicalSchema())),
        )

    def of_entry(self, session: SparkSession, table: Table) -> Table:  # noqa: ARG002
        """Without Delta's catalog Spark can't say how the table is partitioned."""
        log.warning(
            "%s is a Delta table, but spark.sql.catalog.spark_catalog is not Delta's catalog, so "
            "it is not pruned: set it to org.apache.spark.sql.delta.catalog.DeltaCatalog",
            table.name,
        )
        return table

    def most_values(self, session: SparkSession, table: Table, column: str) -> int:  # noqa: ARG002
        """Delta makes one range of a list on a column that is no partition column."""
        return MOST_VALUES if column in table.partitioned_by else 1

    def expression(
        self,
        table: Table,  # noqa: ARG002
        filters: Sequence[tuple[str, RowFilter]],
    ) -> str | None:
        """The conditions as SQL."""
        return " AND ".join(f"({values_condition(quote(name), found)})" for name, found in filters)

    def counted(
        self, session: SparkSession, loaded: Any, found: PlannedFiles
    ) -> PlannedFiles | None:
        """The files in the plan that Delta makes for a query with the condition."""
        if found.expression is None:
            return None
        snapshot = loaded.initialSnapshot()
        query = loaded.toDf(session._jsparkSession).where(found.expression).queryExecution()
        (leaf,) = items(query.optimizedPlan().collectLeaves())
        if leaf.getClass().getSimpleName() == "LocalRelation":  # the condition is never true
            return replace(_of_all(snapshot, found), partitions=0, files=0, bytes=0)
        return files_of_scan(session, leaf.relation(), found)

    def all_files(self, loaded: Any) -> tuple[int, int] | None:
        """Those of the version's checksum, or else by a Spark job over its log."""
        snapshot = loaded.initialSnapshot()
        return _files(snapshot), _bytes(snapshot)

    def version(
        self,
        session: SparkSession,  # noqa: ARG002
        place: Place,  # noqa: ARG002
        loaded: Any,
    ) -> str | None:
        """The number of the version; ``None`` if the name itself selects a version."""
        if loaded.timeTravelOpt().isDefined() or VERSION.search(str(loaded.path())):
            return None
        return str(loaded.initialSnapshot().version())

    def table_id(self, loaded: Any) -> str:
        """The table's ID: a table that is made again has the same numbers of versions."""
        return str(loaded.initialSnapshot().metadata().id())

    def state(self, loaded: Any) -> Mapping[str, str]:
        """The table's ID."""
        return {"table ID": self.table_id(loaded)}

    def as_of(self, version: str) -> str:
        """The clause with the number of the version."""
        return f"VERSION AS OF {version}"

    def has_columns_of(self, session: SparkSession, loaded: Any, version: str) -> bool:  # noqa: ARG002
        """Whether the version is the current one: an earlier one may have other columns."""
        return str(loaded.initialSnapshot().version()) == version

    def identity(self, session: SparkSession, loaded: Any) -> Identity:  # noqa: ARG002
        """The table's ID, and the names of the columns in the data files."""
        metadata = loaded.initialSnapshot().metadata()
        return Identity.of(str(metadata.id()), names_in_files(metadata).items())

    def partition_fields(self, table: Table) -> Sequence[PartitionField]:
        """The partition columns, without times: the log has them in a time zone of the writer."""
        return [
            PartitionField(each, each.name)
            for each in table.columns
            if each.name in table.partitioned_by and family(each.type) is not None
        ]

    def has_only(self, loaded: Any, fields: Collection[PartitionField]) -> bool:
        """Whether the table has no other partition columns."""
        columns = items(loaded.initialSnapshot().metadata().partitionColumns())
        return {str(each).lower() for each in columns} == {field.name for field in fields}

    def data_files(
        self,
        session: SparkSession,
        table: Table,
        version: str,
        table_id: str,
        fields: Sequence[PartitionField],
    ) -> dict[str, DataFile]:
        """See :func:`~airflow_hive_opt.spark.catalog.lakes.delta_files.data_files`."""
        columns = [field.name for field in fields]
        return data_files(session, table.name, version, table_id, columns)


def conditions_of_scan(relation: Any) -> list[tuple[int, str]] | None:
    """The conditions by which Delta has chosen a scan's files, ``None`` if it has not.

    Each is the number of values with which it compares, -1 if it is of another kind, and its SQL.
    Without those that a column is not NULL. ``relation`` is that of the scan in a plan of the JVM.
    """
    index = _prepared(relation)
    if index is None:
        return None
    found = []
    for each in items(index.preparedScan().filtersUsedForSkipping().toSeq()):
        kind = each.getClass().getSimpleName()
        if kind != "IsNotNull":
            found.append((_number_of_values(kind, each), str(each.sql())))
    return found


def files_of_scan(session: SparkSession, relation: Any, found: PlannedFiles) -> PlannedFiles | None:
    """``found`` with the files that Delta has chosen for a scan, ``None`` if it has not.

    ``relation`` is that of the scan in a plan of the JVM.
    """
    index = _prepared(relation)
    if index is None:
        return None
    scan = index.preparedScan()
    nothing = to_scala(session._jvm, [])
    used = scan.filtersUsedForSkipping().toSeq()
    return replace(
        _of_all(scan.scannedSnapshot(), found),
        partitions=int(index.listFiles(used, nothing).size()),
        files=int(scan.files().size()),
        bytes=int(index.sizeInBytes()),
    )


def _prepared(relation: Any) -> Any | None:
    """The files that Delta has chosen for a scan; without Delta's extension it chooses none."""
    index = relation.location()
    return index if index.getClass().getSimpleName() == _PREPARED else None


def _number_of_values(kind: str, condition: Any) -> int:
    if kind == "In":
        return int(condition.list().size())
    if kind == "InSet":
        return int(condition.hset().size())
    return 1 if kind == "EqualTo" else -1


def _of_all(snapshot: Any, found: PlannedFiles) -> PlannedFiles:
    return replace(found, total_files=_files(snapshot), total_bytes=_bytes(snapshot))


def _bytes(snapshot: Any) -> int:
    """The size of the version's files: of its checksum, or else by a Spark job over its log."""
    checksum = snapshot.checksumOpt()
    found = checksum.get().tableSizeBytes() if checksum.isDefined() else snapshot.sizeInBytes()
    return int(found)


def _files(snapshot: Any) -> int:
    """The number of the version's files, like :func:`_bytes`."""
    checksum = snapshot.checksumOpt()
    return int(checksum.get().numFiles() if checksum.isDefined() else snapshot.numOfFiles())


def _clustering_columns(properties: Any) -> Iterator[str]:
    """The columns of the top level by which Delta clusters the rows, in lower case."""
    text = properties.get(_CLUSTERED)
    for names in json.loads(str(text)) if text else ():
        if len(names) == 1:
            yield str(names[0]).lower()


def _sources_of_generated(snapshot: Any, partitioned: Sequence[str]) -> Iterator[str]:
    """The columns whose names occur in the expressions of generated partition columns."""
    fields = json.loads(snapshot.schema().json())["fields"]
    generated = [
        str(each["metadata"][_GENERATED]).lower()
        for each in fields
        if each["name"].lower() in partitioned and _GENERATED in each["metadata"]
    ]
    for each in fields:
        name = each["name"].lower()
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        if name not in partitioned and any(word.search(text) for text in generated):
            yield name


def path_read(relation: Any) -> str | None:
    """The name of a table that a plan reads by its path, ``None`` if the relation is not Delta's.

    ``relation`` is the JVM's, with the files that a scan reads.
    """
    index = relation.location()
    if not str(index.getClass().getName()).startswith("org.apache.spark.sql.delta."):
        return None
    return f"delta.{index.path()}"
