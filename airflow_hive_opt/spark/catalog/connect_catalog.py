"""A Spark Connect server's catalog, over SQL: the planner's catalog and a metastore."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.metastores.hive_tables import is_transactional, own_format
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.spark_properties import view_definition
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.restriction.literals import literal
from airflow_hive_opt.spark.catalog.connect_definitions import ConnectDefinitions
from airflow_hive_opt.spark.catalog.definitions import Definitions
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG
from airflow_hive_opt.spark.catalog.lakes.tables import LakeTables
from airflow_hive_opt.spark.catalog.listed_partitions import ListedPartitions
from airflow_hive_opt.spark.catalog.table_facts import (
    MANAGED,
    NOT_FOUND,
    columns_in,
    description_of,
    read_by_serde,
)
from airflow_hive_opt.spark.keys.skeleton import fulfilling
from airflow_hive_opt.spark.session.spark_compat import condition_of
from airflow_hive_opt.statement.catalog import Buckets, Table
from airflow_hive_opt.statement.identifiers import quote, quote_table
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS
from airflow_hive_opt.statement.zip_strict import zip_strict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIZE = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) ([KMGTPE]?)i?B")
_POWERS = {prefix: 1 << 10 * power for power, prefix in enumerate(("", *"KMGTPE"))}


class ConnectCatalog(ListedPartitions):
    """A :class:`~airflow_hive_opt.metastores.metastore.Metastore` over Spark Connect.

    Tables come from ``DESCRIBE ... AS JSON``. Partitions come from ``SHOW PARTITIONS``, which gives
    their names without location and statistics. An instance looks up each table once and lists its
    names once, so use one instance for one run. The number of metastore calls that the server
    makes is not known.
    """

    is_on_glue = False
    """Over Spark Connect the settings that would say so can't be read."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__()
        self._session = session
        self._tables: dict[str, Table | None] = {}
        self._told: dict[str, Mapping[str, Any]] = {}
        self._lake = LakeTables(session)

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        place = self._lake.place(name)
        if place is not None and not self._is_temporary(name):
            return self._lake.table(place)
        key = name.lower().removeprefix(f"{SESSION_CATALOG}.")
        if key not in self._tables:
            self._tables[key] = self._look_up(key)
        return self._tables[key]

    def look_up_together(self, sql: str) -> None:
        """Does nothing: here each table is a call of its own."""

    def definitions(self) -> Definitions:
        """See :class:`~airflow_hive_opt.spark.catalog.session_catalog.SessionCatalog`."""
        return ConnectDefinitions(self._session, self.description, self._temporary_views)

    def described(self, table: Table, columns: Container[str]) -> Table:
        """A table that this instance has looked up, with its buckets and statistics, if any.

        Each column's statistics are one call to the server, so only ``columns`` are asked for.
        """
        told = self._told.get(table.name)
        if told is None:
            return table
        buckets = None
        if told.get("num_buckets"):
            names, sort = (
                tuple(str(name).lower() for name in told.get(key, ()))
                for key in ("bucket_columns", "sort_columns")
            )
            buckets = Buckets(
                names,
                int(told["num_buckets"]),
                tuple((name, "asc") for name in sort),
                by_spark=told.get("provider") != "hive",
            )
        distinct: tuple[tuple[str, int], ...] = ()
        if "num_rows" in told.get("statistics", {}):
            asked = (column.name for column in table.all_columns if column.name in columns)
            counted = ((name, self._distinct(table, name)) for name in asked)
            distinct = tuple((name, count) for name, count in counted if count is not None)
        return replace(table, distinct=distinct, buckets=buckets)

    def location(self, name: str) -> str | None:
        """A table's location; ``None`` for a view and for a name that does not exist."""
        if self._lists_its_files(name):
            return table.location if (table := self.table(name)) is not None else None
        told = self._description(name)
        return None if told is None else told.get("location")

    def description(self, name: str) -> Mapping[str, Any] | None:
        """What DESCRIBE AS JSON says of a table or view of the metastore; ``None`` without one."""
        return None if self._lists_its_files(name) else self._description(name)

    def _description(self, name: str) -> Mapping[str, Any] | None:
        try:
            return description_of(self._session, self._named(name))
        except AnalysisException as error:
            if condition_of(error) in NOT_FOUND:
                return None
            raise

    def default_location(self) -> str | None:
        """The location of the metastore's database ``default``."""
        return self._session.catalog.getDatabase("default").locationUri

    def _list_names(self, table: Table) -> Iterable[str]:
        rows = self._session.sql(f"SHOW PARTITIONS {self._named(table.name)}").collect()
        return (name for (name,) in rows)

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        wanted = {part.values for part in partitions}
        return [part for part in self.partition_names(table) if part.values in wanted]

    def partitions_by_filter(
        self, table: Table, alias: str, condition: str, parameters: Mapping[str, object]
    ) -> list[Partition]:
        """The partitions for which ``condition``, on ``alias``'s partition columns, is true.

        Raises ``ValueError`` for a condition that is not deterministic.
        """
        names = self.partition_names(table)
        layers = [Layer(alias, ())]
        found = fulfilling(self._session, table, layers, names, [condition], parameters)
        if found is None:
            raise ValueError(f"the condition on {table.name} is not deterministic: {condition}")
        return found

    def with_bytes(self, target: Target) -> Target:
        """The target with the metastore's size for each partition, one call for each."""
        table = self.table(target.scan.table)
        if table is None:
            return target
        sized = (
            part if part.bytes is not None else replace(part, bytes=self._bytes(table, part))
            for part in target.partitions
        )
        return replace(target, partitions=tuple(sized))

    def storage(self, table: Table) -> tuple[str, str]:
        """Format (``parquet`` or ``orc``) and location; empty if Spark's own reader is not used."""
        told = self._told.get(table.name)
        if told is None or self._is_read_by_serde(told):
            return "", ""
        format_ = own_format(f"{told.get('provider', '')} {told.get('serde_library', '')}")
        return (format_, told.get("location", "")) if format_ else ("", "")

    def work(self) -> None:
        """``None``: the server does not report its metastore calls by session."""
        return

    def _look_up(self, name: str) -> Table | None:
        if self._lake.loads_session_catalog and not self._is_temporary(name):
            database, _, short = name.rpartition(".")
            database = database or str(self._session.catalog.currentDatabase())
            if (lake := self._lake.in_session_catalog(database, short)) is not None:
                return lake
        told = self._description(name)
        if told is None:
            return None
        full = f"{told['schema_name']}.{told['table_name']}".lower()
        if told["catalog_name"] != "spark_catalog":  # a temporary view
            full = name
        elif told.get("type") != "VIEW":
            self._told[full] = told
        location = told.get("location") if full in self._told else None
        # DESCRIBE shows CHAR and VARCHAR as STRING
        columns = columns_in(self._session.table(self._named(name)).schema)
        partitioned = [column.lower() for column in told.get("partition_columns", ())]
        transactional = is_transactional(told.get("table_properties") or {})
        if not partitioned:
            size = self._estimated(name)
            definition = view_definition(
                told.get("view_text"),
                str(told.get("view_catalog_and_namespace", "")).split("."),
                told.get("view_query_output_columns", ()),
            )
            return Table(
                full,
                tuple(columns),
                total_bytes=size,
                definition=definition,
                location=location,
                transactional=transactional,
            )
        provider = str(told.get("provider")).lower()
        managed = told.get("partition_provider") == "Catalog" and (
            self._session.conf.get(MANAGED) == "true"
        )
        return Table(
            full,
            tuple(column for column in columns if column.name not in partitioned),
            tuple(column for column in columns if column.name in partitioned),
            told.get("statistics", {}).get("size_in_bytes"),
            partitions_in_metastore=provider not in LAKE_FORMATS
            and (provider == "hive" or managed),
            by_serde=self._is_read_by_serde(told),
            location=location,
            transactional=transactional,
        )

    def _lists_its_files(self, name: str) -> bool:
        """Whether it is a table of another catalog, or one that lists its own files."""
        is_elsewhere = self._lake.place(name) is not None
        if not (is_elsewhere or self._lake.loads_session_catalog) or self._is_temporary(name):
            return False
        return is_elsewhere or ((table := self.table(name)) is not None and table.provider != "")

    def _named(self, name: str) -> str:
        """The name of a table of the metastore or of a view, also if another catalog is current."""
        own = name.removeprefix(f"{SESSION_CATALOG}.")
        is_elsewhere = not self._lake.is_session_catalog_current
        in_database = "." in own and not own.startswith("global_temp.")
        return quote_table(f"{SESSION_CATALOG}.{own}" if is_elsewhere and in_database else own)

    def _is_temporary(self, name: str) -> bool:
        return "." not in name and name.lower() in self._temporary_views

    @cached_property
    def _temporary_views(self) -> frozenset[str]:
        # not those of the current catalog, which may have no views
        rows = self._session.sql(f"SHOW VIEWS IN {SESSION_CATALOG}.default").collect()
        return frozenset(row.viewName.lower() for row in rows if row.isTemporary)

    def _distinct(self, table: Table, column: str) -> int | None:
        """The number of distinct values of a column that ANALYZE TABLE has found."""
        try:
            told = self._session.sql(
                f"DESCRIBE TABLE EXTENDED {self._named(table.name)} {quote(column)}"
            ).collect()
        except AnalysisException:  # for a column of a complex type
            return None
        count = str(dict(map(tuple, told)).get("distinct_count", ""))
        return int(count) if count.isdigit() else None

    def _estimated(self, name: str) -> int | None:
        """Spark's own estimate in bytes; very large if Spark has no statistics."""
        ((plan,),) = self._session.sql(f"EXPLAIN COST SELECT * FROM {self._named(name)}").collect()
        return size_of(plan)

    def _bytes(self, table: Table, partition: Partition) -> int | None:
        values = zip_strict(table.partition_columns, partition.values)
        texts = [f"{quote(c.name)} = {'NULL' if v is None else literal(v)}" for c, v in values]
        try:
            spec = f"PARTITION ({', '.join(texts)})"
            told = description_of(self._session, f"{self._named(table.name)} {spec}")
        except AnalysisException:  # the partition is gone, or its value has no literal there
            return None
        size = told.get("partition_parameters", {}).get("totalSize", "")
        return int(size) if size.isdigit() else None

    def _is_read_by_serde(self, told: Mapping[str, Any]) -> bool:
        """Whether Spark reads the table with Hive's serde, not with its own reader."""
        if told.get("provider") != "hive":
            return False
        return read_by_serde(self._session, str(told.get("serde_library", "")))


def size_of(plan: str) -> int | None:
    """The size in bytes that ``EXPLAIN COST`` gives for the whole plan, rounded up.

    >>> size_of("Project [1 AS a], Statistics(sizeInBytes=867.0 B)")
    868
    >>> size_of("Relation db.t[k] parquet, Statistics(sizeInBytes=23.8 MiB)") > 23.8 * 1024**2
    True
    """
    found = _SIZE.search(plan)
    return math.ceil((float(found[1]) + 0.05) * _POWERS[found[2]]) if found else None
