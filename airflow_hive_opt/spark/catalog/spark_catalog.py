"""Spark's session catalog as the planner's catalog and as the local task's metastore."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.metastores.hive_tables import own_format
from airflow_hive_opt.metastores.partitions import Partition, are_usual, typed_row
from airflow_hive_opt.metastores.spark_properties import view_definition
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.restriction.list_condition import cheapest_way, list_condition
from airflow_hive_opt.spark.catalog.definitions import Definitions
from airflow_hive_opt.spark.catalog.fetched_together import fetched_together
from airflow_hive_opt.spark.catalog.lakes.formats import entry_format
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG
from airflow_hive_opt.spark.catalog.lakes.tables import LakeTables
from airflow_hive_opt.spark.catalog.listed_partitions import ListedPartitions
from airflow_hive_opt.spark.catalog.session_definitions import SessionDefinitions
from airflow_hive_opt.spark.catalog.statistics import with_statistics
from airflow_hive_opt.spark.catalog.table_facts import (
    NOT_FOUND,
    columns_of,
    has_partitions_in_metastore,
    is_read_by_serde,
    is_transactional,
    location_of,
    partitions_in,
    sized,
)
from airflow_hive_opt.spark.catalog.work import work_of
from airflow_hive_opt.spark.session.glue import is_on_glue
from airflow_hive_opt.spark.session.partition_lookup import partition_lookup
from airflow_hive_opt.spark.session.session import is_shared
from airflow_hive_opt.spark.session.spark_compat import active, condition_of, to_scala
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.tables import tables_of
from airflow_hive_opt.statement.zip_strict import zip_strict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath


_ALIAS = "__partitions"


class SparkCatalog(ListedPartitions):
    """Spark's session catalog, a :class:`~airflow_hive_opt.metastores.metastore.Metastore`.

    Works with any metastore that Spark has: embedded, secured, or a vendor's. An instance looks up
    each table once and lists its names once, so use one instance for one run. The session
    catalog checks for each name that database and table exist. The external catalog below it does
    not, so this class calls that one, which halves the metastore calls. ``indexes`` is the folder
    of the key indexes.
    """

    def __init__(self, session: SparkSession, indexes: StoragePath | None = None) -> None:
        super().__init__()
        self._session = session
        self._jvm: Any = session._jvm
        self._state: Any = session._jsparkSession.sessionState()
        self._catalog: Any = self._state.catalog()
        self._external: Any = session._jsparkSession.sharedState().externalCatalog()
        self._tables: dict[str, Table | None] = {}
        self._own_names: dict[str, list[str]] = {}
        self._found: dict[str, Any] = {}
        self._fetched: dict[str, Any] = {}
        self._lake = LakeTables(session, indexes)

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        place = self._lake.place(name)
        if place is not None and ("." in name or not self._is_temporary(name)):
            return self._lake.table(place)
        key = name.lower().removeprefix(f"{SESSION_CATALOG}.")
        if key not in self._tables:
            self._tables[key] = self._look_up(key)
        return self._tables[key]

    @cached_property
    def is_on_glue(self) -> bool:
        """See :class:`~airflow_hive_opt.spark.catalog.session_catalog.SessionCatalog`."""
        return is_on_glue(self._session)

    def definitions(self) -> Definitions:
        """See :class:`~airflow_hive_opt.spark.catalog.session_catalog.SessionCatalog`."""
        return SessionDefinitions(self._session, self.metadata)

    def look_up_together(self, sql: str) -> None:
        """Fetches the tables that a statement reads in one metastore call for each database.

        A table that is not fetched here is looked up alone later, with its error if there is one.
        """
        names = tables_of(sql, str(self._session.catalog.currentDatabase())).reads
        own = (name for name in names if self._lake.place(name) is None)
        self._fetched |= fetched_together(self._jvm, self._external, own)

    def described(
        self,
        table: Table,
        columns: Container[str],  # noqa: ARG002 - all columns' statistics are here already
    ) -> Table:
        """A table that this instance has looked up, with its buckets and statistics, if any."""
        metadata = self._found.get(table.name)
        return table if metadata is None else with_statistics(table, metadata)

    def location(self, name: str) -> str | None:
        """A table's location; ``None`` for a view and for a name that does not exist."""
        database, _, short = name.lower().rpartition(".")
        if not database and self._is_temporary(short):
            return None
        if self._lake.place(name) is not None:
            return table.location if (table := self.table(name)) is not None else None
        metadata = self.metadata(name)
        return location_of(metadata) if metadata is not None else None

    def metadata(self, name: str) -> Any | None:
        """The JVM's description of a table or view of the metastore; ``None`` if there is none."""
        if self._lake.place(name) is not None:
            return None
        database, _, short = name.lower().removeprefix(f"{SESSION_CATALOG}.").rpartition(".")
        database = database or self._catalog.getCurrentDatabase()
        return self._found.get(f"{database}.{short}") or self._metadata(short, database)

    def default_location(self) -> str | None:
        """The location of the metastore's database ``default``."""
        return unquote(str(self._external.getDatabase("default").locationUri().toString()))

    def _list_names(self, table: Table) -> Iterable[str]:
        names = self._external.listPartitionNames(
            *self._database_and_name(table), self._jvm.scala.Option.empty()
        )
        # as one text: for many thousand names, one JVM call for each would take seconds
        return filter(None, names.mkString("\n").split("\n"))

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`.

        Spark has no such call, so this passes a condition on the values. A partition whose value
        can't be read as its column's type is returned by name only, without details.
        """
        wanted = list(dict.fromkeys(Partition(part.values) for part in partitions))
        types = [column.type for column in table.partition_columns]
        rows, unreadable = set(), []
        for part in wanted:
            row = typed_row(part, types)
            if row is None:
                unreadable.append(part)
            else:
                rows.add(row)
        if not rows:
            return unreadable
        columns = [column.name for column in table.partition_columns]
        total = self.partition_count(table)
        usual = are_usual(wanted, types)
        chosen = cheapest_way(columns, rows, total, self.is_on_glue, usual)
        condition = list_condition(_ALIAS, columns, rows, chosen)
        with partition_lookup(self._session, {chosen}):
            found = self.partitions_by_filter(table, _ALIAS, condition, {})
        named = {part.values for part in wanted}  # '08' and '8' are the same number
        return [part for part in found if part.values in named] + unreadable

    def partitions_by_filter(
        self, table: Table, alias: str, condition: str, parameters: Mapping[str, object]
    ) -> list[Partition]:
        """The partitions for which ``condition``, on ``alias``'s partition columns, is true.

        The metastore filters as far as its filter language allows, and Spark checks the result.
        The answer is exact and uses the table's types.
        """
        columns = ", ".join(
            f"CAST(NULL AS {column.type}) AS {quote(name)}"
            for name, column in zip_strict(self._own_columns(table), table.partition_columns)
        )
        # over typed NULLs, because Spark would look up the table again
        sql = f"SELECT 1 FROM (SELECT {columns}) AS {quote(alias)} WHERE {condition}"
        frame = self._session.sql(sql, args=dict(parameters))
        filter_ = frame._jdf.queryExecution().analyzed().children().head()
        # the catalog expects the column names in the table's own case
        strategy = self._object("org.apache.spark.sql.execution.datasources.DataSourceStrategy")
        named = strategy.normalizeExprs(
            to_scala(self._jvm, [filter_.condition()]), filter_.child().output()
        )
        zone = self._state.conf().sessionLocalTimeZone()
        with active(self._session):
            found = self._external.listPartitionsByFilter(
                *self._database_and_name(table), named, zone
            )
        return self._partitions(table, found)

    def with_bytes(self, target: Target) -> Target:
        """The target with every partition's size in bytes: the metastore's, else its files'."""
        table = self.table(target.scan.table)
        bare = [part for part in target.partitions if part.bytes is None and part.location is None]
        if table is None or all(part.bytes is not None for part in target.partitions):
            return target
        known = {part.values: part for part in self.partitions_by_names(table, bare)}
        partitions = (known.get(part.values, part) for part in target.partitions)
        return replace(target, partitions=tuple(map(self._measured, partitions)))

    def storage(self, table: Table) -> tuple[str, str]:
        """Format (``parquet`` or ``orc``) and location; empty if Spark's own reader is not used."""
        database, _, short = table.name.rpartition(".")
        if not database:
            return "", ""
        metadata = self._catalog.getTableMetadata(self._table_identifier(short, database))
        told = (metadata.provider().getOrElse(None), metadata.storage().serde().getOrElse(None))
        format_ = own_format(" ".join(str(text) for text in told if text))
        if not format_ or is_read_by_serde(self._session, metadata):
            return "", ""
        return format_, unquote(metadata.location().toString())

    def work(self) -> Work | None:
        """The metastore calls and file listings of this JVM's sessions so far.

        ``None`` if tasks share the JVM, whose counters do not tell them apart.
        """
        return None if is_shared(self._session.sparkContext) else work_of(self._jvm)

    def _measured(self, partition: Partition) -> Partition:
        """The partition with its files' size; unchanged if it has a size or no location."""
        if partition.bytes is not None or partition.location is None:
            return partition
        path = self._jvm.org.apache.hadoop.fs.Path(partition.location)
        files = path.getFileSystem(self._state.newHadoopConf())
        size = files.getContentSummary(path).getLength() if files.exists(path) else 0
        return replace(partition, bytes=int(size))

    def _object(self, name: str) -> Any:
        return getattr(getattr(self._jvm, f"{name}$"), "MODULE$")

    def _look_up(self, name: str) -> Table | None:
        database, _, short = name.rpartition(".")
        if not database and self._is_temporary(short):
            return sized(short, self._session.table(quote(short))._jdf.queryExecution())
        database = database or self._catalog.getCurrentDatabase()
        metadata = self._metadata(short, database)
        if metadata is None or entry_format(metadata) is not None:
            lake = self._lake.in_session_catalog(database, short)
            if lake is not None or metadata is None:
                return lake
        full = f"{database}.{short}".lower()
        self._found[full] = metadata
        return self._lake.of_entry(self._of_metastore(full, metadata), metadata)

    def _of_metastore(self, full: str, metadata: Any) -> Table:
        database, _, short = full.rpartition(".")
        own_names = self._texts(metadata.partitionColumnNames())
        size = metadata.stats()
        # without statistics in the metastore Spark measures the files; a view has a plan of its own
        if not own_names and (not size.isDefined() or metadata.viewText().isDefined()):
            # getRelation expects CHAR and VARCHAR as STRING, which getTableMetadata gives
            relation = self._catalog.getRelation(
                self._catalog.getTableMetadata(self._table_identifier(short, database)),
                getattr(self._catalog, "getRelation$default$2")(),
            )
            table = sized(full, self._executed(relation))
            view = metadata.viewText()
            definition = view_definition(
                view.get() if view.isDefined() else None,
                self._texts(metadata.viewCatalogAndNamespace()),
                self._texts(metadata.viewQueryColumnNames()),
            )
            location = None if view.isDefined() else location_of(metadata)
            return replace(
                table,
                definition=definition,
                location=location,
                transactional=is_transactional(metadata),
            )
        self._own_names[full] = own_names
        partitioned = {column.lower() for column in own_names}
        columns = columns_of(metadata.schema())
        return Table(
            full,
            tuple(column for column in columns if column.name not in partitioned),
            tuple(column for column in columns if column.name in partitioned),
            int(size.get().sizeInBytes()) if size.isDefined() else None,
            partitions_in_metastore=not own_names
            or has_partitions_in_metastore(self._session, metadata),
            by_serde=bool(own_names) and is_read_by_serde(self._session, metadata),
            location=location_of(metadata),
            transactional=is_transactional(metadata),
        )

    def _metadata(self, short: str, database: str) -> Any | None:
        if (fetched := self._fetched.get(f"{database}.{short}".lower())) is not None:
            return fetched
        try:
            return self._external.getTable(database, short)
        except AnalysisException as error:
            if condition_of(error) in NOT_FOUND:
                return None
            raise

    def _executed(self, relation: Any) -> Any:
        """The execution of a relation with metadata, so Spark does not look it up again."""
        return self._state.executePlan(relation, getattr(self._state, "executePlan$default$2")())

    def _own_columns(self, table: Table) -> list[str]:
        if table.name not in self._own_names:
            self._look_up(table.name)
        return self._own_names[table.name]

    def _partitions(self, table: Table, found: Any) -> list[Partition]:
        """Spark's partitions, read as one JSON text: each JVM call takes nearly a millisecond."""
        mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        mapper.registerModule(self._object("com.fasterxml.jackson.module.scala.DefaultScalaModule"))
        return partitions_in(str(mapper.writeValueAsString(found)), table)

    def _database_and_name(self, table: Table) -> tuple[str, str]:
        database, _, short = table.name.rpartition(".")
        return database, short

    def _table_identifier(self, short: str, database: str | None) -> Any:
        name = quote(short) if database is None else f"{quote(database)}.{quote(short)}"
        return self._state.sqlParser().parseTableIdentifier(name)

    def _is_temporary(self, short: str) -> bool:
        return bool(self._catalog.isTempView(self._table_identifier(short, None)))

    def _texts(self, sequence: Any) -> list[str]:
        """A Scala sequence of names, in one JVM call; no name contains a NUL."""
        return [text for text in sequence.mkString("\0").split("\0") if text]
