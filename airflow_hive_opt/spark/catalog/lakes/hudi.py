"""Hudi: a table's partitions are folders, and its metadata table may have bounds of columns.

Hudi reads a partition column from the folder's name, with and without a condition. So a condition
on it selects whole folders, and no row of another one. Only the key generators that write the
column's own value as the name count: others make a name of it in a way that only Hudi knows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.restriction.row_changes import values_condition
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import provider_of
from airflow_hive_opt.spark.session.physical_operators import operators_of
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote, quote_table
from airflow_hive_opt.statement.lake_formats import HUDI
from airflow_hive_opt.statement.types import TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_V2_TABLE = "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table"
_V1_TABLE = "org.apache.spark.sql.connector.catalog.V1Table"
_KEY_GENERATORS = ("SimpleKeyGenerator", "ComplexKeyGenerator", "NonpartitionedKeyGenerator")
_COLUMN_STATS = "column_stats"
_COUNTS = {"partitions": "numPartitions", "files": "numFiles", "bytes": "filesSize"}
MOST_PARTITIONS, MOST_VALUES = 1_000, 200


class Hudi:
    """See :class:`~airflow_hive_opt.spark.catalog.lakes.lake_format.LakeFormat`."""

    name = HUDI
    reads_paths = False
    plans_files = False

    def is_entry(self, metadata: Any) -> bool:
        """Whether the entry's provider is Hudi."""
        return provider_of(metadata) == HUDI

    def is_loaded(self, session: SparkSession, loaded: Any) -> bool:  # noqa: ARG002
        """Hudi's catalog loads a class of its own only if the schema may evolve."""
        kind = str(loaded.getClass().getName())
        return kind == _V2_TABLE or (
            kind == _V1_TABLE and provider_of(loaded.catalogTable()) == HUDI
        )

    def described(self, session: SparkSession, place: Place, table: Table, loaded: Any) -> Table:  # noqa: ARG002
        """Reads the table's own properties and its index of column statistics, if there is one.

        The size of a partitioned table is not known: Hudi would have to list every partition.
        """
        jvm: Any = session._jvm
        hudi = jvm.org.apache.spark.sql.catalyst.catalog.HoodieCatalogTable.apply(
            session._jsparkSession, _entry(loaded)
        )
        generator = str(hudi.tableConfig().getKeyGeneratorClassName()).rpartition(".")[2]
        fields = [str(each).lower() for each in hudi.partitionFields()]
        if fields and generator not in _KEY_GENERATORS:
            log.warning(
                "%s is not pruned: with its key generator %s, partition names differ from the "
                "values of %s",
                table.name,
                generator,
                ", ".join(fields),
            )
            return replace(table, provider=HUDI)
        size = None if fields else (_scanned(_frame(session, loaded)) or {}).get("bytes")
        types = {each.name: each.type for each in table.columns}
        partitioned = tuple(each for each in fields if types.get(each) not in (None, TIMESTAMP))
        return replace(
            table,
            total_bytes=table.total_bytes if size is None else size,
            provider=HUDI,
            clustered_by=partitioned,
            partitioned_by=partitioned,
            bounded=tuple(each for each in _indexed(hudi.metaClient()) if each not in fields),
        )

    def of_entry(self, session: SparkSession, table: Table) -> Table:  # noqa: ARG002
        """The table unchanged, and a warning: without Hudi's catalog it is not pruned."""
        log.warning(
            "%s is a Hudi table, but spark.sql.catalog.spark_catalog is not Hudi's catalog, so "
            "it is not pruned: set it to org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            table.name,
        )
        return table

    def most_values(self, session: SparkSession, table: Table, column: str) -> int:  # noqa: ARG002
        """A longer list on a column with bounds costs more than it skips."""
        return MOST_PARTITIONS if column in table.partitioned_by else MOST_VALUES

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
        """The files in the scans that Spark plans for the table, with and without the condition.

        A file group of a merge-on-read table is one file, and its log files have no size.
        """
        if found.expression is None:
            return None
        frame = _frame(session, loaded)
        whole = _scanned(frame)
        if whole is None:
            return None
        part = _scanned(frame.where(found.expression)) or dict.fromkeys(_COUNTS, 0)
        return replace(
            found,
            partitions=part["partitions"],
            files=part["files"],
            bytes=part["bytes"],
            total_files=whole["files"],
            total_bytes=whole["bytes"],
        )

    def all_files(self, loaded: Any) -> tuple[int, int] | None:  # noqa: ARG002
        """``None``: no key index needs them."""
        return None

    def version(self, session: SparkSession, place: Place, loaded: Any) -> str | None:  # noqa: ARG002
        """Hudi's tables are not held to a version."""
        return None

    def table_id(self, loaded: Any) -> str:  # noqa: ARG002
        """Empty: a version is a time."""
        return ""

    def state(self, loaded: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Hudi's tables have no version that this package reads."""
        return {}

    def as_of(self, version: str) -> str:
        """The clause with the instant."""
        return f"TIMESTAMP AS OF '{version}'"

    def has_columns_of(self, session: SparkSession, loaded: Any, version: str) -> bool:  # noqa: ARG002
        """Hudi's tables are not held to a version."""
        return False


def _entry(loaded: Any) -> Any:
    """The metastore's entry of the table, an object of the JVM."""
    if str(loaded.getClass().getName()) == _V2_TABLE:
        return loaded.v1Table()
    return loaded.catalogTable()


def _frame(session: SparkSession, loaded: Any) -> DataFrame:
    """The table as the statement reads it."""
    identifier = _entry(loaded).identifier()
    return session.table(quote_table(f"{identifier.database().get()}.{identifier.table()}"))


def _indexed(client: Any) -> Iterator[str]:
    """The columns for which the metadata table has each file's lowest and highest value."""
    if not client.getTableConfig().getMetadataPartitions().contains(_COLUMN_STATS):
        return
    index = client.getIndexForMetadataPartition(_COLUMN_STATS)
    for name in index.get().getSourceFields() if index.isPresent() else ():
        if not str(name).startswith("_hoodie_"):
            yield str(name).lower()


def _scanned(frame: DataFrame) -> dict[str, int] | None:
    """The files that the frame's scan will read, which this lists; ``None`` without a scan."""
    for kind, operator in operators_of(frame):
        if kind == "FileSourceScanExec":
            operator.inputRDD()  # lists the files, and reads none
            metrics = operator.metrics()
            given = {name: metrics.get(metric) for name, metric in _COUNTS.items()}
            return {
                name: int(each.get().value()) if each.isDefined() else 1
                for name, each in given.items()
            }
    return None
