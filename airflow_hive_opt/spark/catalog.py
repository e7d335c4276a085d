"""Spark's session catalog as the planner's catalog and as the local task's metastore."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from airflow_hive_opt.planner.catalog import Column, Table, ViewDefinition
from airflow_hive_opt.planner.identifiers import quote, quote_table
from airflow_hive_opt.runtime.descriptor import Target
from airflow_hive_opt.runtime.partitions import DEFAULT_PARTITION, Partition, parse_name, value_of
from airflow_hive_opt.runtime.report import Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXACT_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


class SparkCatalog:
    """The tables of one Spark session; each is looked up once."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._jvm: Any = session._jvm
        self._catalog: Any = session._jsparkSession.sessionState().catalog()
        self._tables: dict[str, Table | None] = {}

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.planner.catalog.Catalog`."""
        key = name.lower()
        if key not in self._tables:
            self._tables[key] = self._look_up(key)
        return self._tables[key]

    def partition_names(self, table: Table) -> list[Partition]:
        """Every partition by its name alone: one call, cheap strings."""
        names = self._catalog.listPartitionNames(
            self._identifier(table.name), self._jvm.scala.Option.empty()
        )
        # as one text: a call to the JVM for each of many thousand names would take seconds
        text = names.mkString("\n")
        return [parse_name(name) for name in text.split("\n")] if text else []

    def partitions_by_filter(
        self, table: Table, alias: str, condition: str, parameters: Mapping[str, object]
    ) -> list[Partition]:
        """The partitions for which ``condition``, on ``alias``'s partition columns, is true.

        The metastore filters as far as its language goes and Spark checks what comes back, so
        the answer is exact and typed as the table types it.
        """
        filter_ = self._analyzed(table, alias, condition, parameters).children().head()
        # columns named in the table's own case, which the session catalog expects
        strategy = self._object("org.apache.spark.sql.execution.datasources.DataSourceStrategy")
        named = strategy.normalizeExprs(
            self._to_scala([filter_.condition()]), filter_.child().output()
        )
        found = self._catalog.listPartitionsByFilter(self._identifier(table.name), named)
        return [self._partition(table, part) for part in self._to_list(found)]

    def with_bytes(self, target: Target) -> Target:
        """The target with the size of every partition: the metastore's figure, else the files'."""
        partitions = [
            part if part.bytes is not None else self._measured(target, part)
            for part in target.partitions
        ]
        return replace(target, partitions=tuple(partitions))

    def storage(self, table: Table) -> tuple[str, str]:
        """``parquet`` or ``orc`` where Spark's own reader reads the table, else empty; location."""
        database, _, short = table.name.rpartition(".")
        if not database:
            return "", ""
        metadata = self._catalog.getTableMetadata(self._table_identifier(short, database))
        told = (metadata.provider().getOrElse(None), metadata.storage().serde().getOrElse(None))
        name = " ".join(str(text) for text in told if text).lower()
        formats = [format_ for format_ in ("parquet", "orc") if format_ in name]
        if not formats or self._is_read_by_serde(metadata):
            return "", ""
        return formats[0], metadata.location().toString()

    def work(self) -> Work:
        """What this JVM's sessions have asked for so far."""
        metrics = self._jvm.org.apache.spark.metrics.source.HiveCatalogMetrics
        return Work(
            metrics.METRIC_HIVE_CLIENT_CALLS().getCount(),
            metrics.METRIC_PARTITIONS_FETCHED().getCount(),
            metrics.METRIC_FILES_DISCOVERED().getCount(),
        )

    def _measured(self, target: Target, partition: Partition) -> Partition:
        location = partition.location
        if location is None:
            spec = dict(zip(target.columns, partition.values, strict=True))
            values = {name: DEFAULT_PARTITION if v is None else v for name, v in spec.items()}
            identifier = self._identifier(target.table)
            found = self._catalog.getPartition(identifier, self._to_scala_map(values))
            location = found.storage().locationUri().get().toString()
        path = self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(location))
        files = path.getFileSystem(self._session._jsparkSession.sessionState().newHadoopConf())
        size = files.getContentSummary(path).getLength() if files.exists(path) else 0
        return replace(partition, location=location, bytes=int(size))

    def _to_scala_map(self, values: Mapping[str, str]) -> Any:
        """An immutable Scala map."""
        java = self._jvm.java.util.HashMap()
        for name, value in values.items():
            java.put(name, value)
        scala = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(java)
        return getattr(self._object("scala.collection.immutable.Map"), "from")(scala)

    def _object(self, name: str) -> Any:
        """A Scala object."""
        return getattr(getattr(self._jvm, f"{name}$"), "MODULE$")

    def _look_up(self, name: str) -> Table | None:
        database, _, short = name.rpartition(".")
        if not database and self._catalog.isTempView(self._table_identifier(short, None)):
            return self._unpartitioned(short, short)
        identifier = self._table_identifier(short, database or self._catalog.getCurrentDatabase())
        if not self._catalog.tableExists(identifier):
            return None
        metadata = self._catalog.getTableMetadata(identifier)
        full = f"{database or self._catalog.getCurrentDatabase()}.{short}".lower()
        partitioned = {column.lower() for column in self._to_list(metadata.partitionColumnNames())}
        if not partitioned:
            return replace(self._unpartitioned(full, full), definition=self._definition(metadata))
        schema = StructType.fromJson(json.loads(metadata.schema().json()))
        columns = [Column(field.name.lower(), _type_of(field)) for field in schema.fields]
        size = metadata.stats()
        return Table(
            full,
            tuple(column for column in columns if column.name not in partitioned),
            tuple(column for column in columns if column.name in partitioned),
            int(size.get().sizeInBytes()) if size.isDefined() else None,
            partitions_in_metastore=bool(metadata.tracksPartitionsInCatalog())
            or metadata.provider().getOrElse(None) == "hive",
            by_serde=self._is_read_by_serde(metadata),
        )

    def _is_read_by_serde(self, metadata: Any) -> bool:
        """Whether Hive's classes read the table, not Spark's own Parquet and ORC readers."""
        if metadata.provider().getOrElse(None) != "hive":
            return False
        serde = metadata.storage().serde()
        name = str(serde.get()).lower() if serde.isDefined() else ""
        own = [format_ for format_ in ("parquet", "orc") if format_ in name]
        conf = self._session.conf
        return not own or conf.get(f"spark.sql.hive.convertMetastore{own[0].title()}") != "true"

    def _definition(self, metadata: Any) -> ViewDefinition | None:
        """A view's query, as Spark stores it."""
        text, names = metadata.viewText(), metadata.viewQueryColumnNames()
        namespace = self._to_list(metadata.viewCatalogAndNamespace())
        if not text.isDefined() or len(namespace) != 2 or namespace[0] != "spark_catalog":
            return None
        columns = tuple(name.lower() for name in self._to_list(names))
        return ViewDefinition(text.get(), namespace[1].lower(), columns)

    def _unpartitioned(self, full: str, name: str) -> Table:
        """A table or view; its size is Spark's own estimate, enormous where it knows nothing."""
        frame = self._session.table(quote_table(name))
        size = int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
        return Table(
            full,
            tuple(Column(field.name.lower(), _type_of(field)) for field in frame.schema.fields),
            total_bytes=size,
        )

    def _analyzed(
        self, table: Table, alias: str, condition: str, parameters: Mapping[str, object]
    ) -> Any:
        name = quote_table(table.name)
        sql = f"SELECT 1 FROM {name} AS {quote(alias)} WHERE {condition}"
        return self._session.sql(sql, args=dict(parameters))._jdf.queryExecution().analyzed()

    def _partition(self, table: Table, part: Any) -> Partition:
        spec = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(part.spec())
        values = {key.lower(): value for key, value in dict(spec).items()}
        location = part.storage().locationUri()
        stats = part.stats()
        rows = stats.get().rowCount() if stats.isDefined() else None
        return Partition(
            tuple(value_of(values[column.name]) for column in table.partition_columns),
            location.get().toString() if location.isDefined() else None,
            int(rows.get()) if rows is not None and rows.isDefined() else None,
            int(stats.get().sizeInBytes()) if stats.isDefined() else None,
        )

    def _identifier(self, name: str) -> Any:
        database, _, short = name.rpartition(".")
        return self._table_identifier(short, database)

    def _table_identifier(self, short: str, database: str | None) -> Any:
        return self._jvm.org.apache.spark.sql.catalyst.TableIdentifier(
            short, self._jvm.scala.Option.apply(database)
        )

    def _to_list(self, sequence: Any) -> list[Any]:
        return list(self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(sequence))

    def _to_scala(self, items: list[Any]) -> Any:
        array = self._jvm.java.util.ArrayList(len(items))
        for item in items:
            array.add(item)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(array).toSeq()


def _type_of(field: StructField) -> str:
    exact = (field.metadata or {}).get(_EXACT_TYPE)
    return str(exact or field.dataType.simpleString()).lower()
