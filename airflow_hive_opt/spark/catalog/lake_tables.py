"""Tables of Spark's other catalogs, of which Iceberg's, Delta's and Hudi's list their own files.

Iceberg stores for each file its partition and the lowest and highest value of its columns. A
condition on the source column of a partition transform, or on a column of the sort order,
therefore skips files, and Spark passes it on. Of Delta's and Hudi's tables, against which no test
has run, only the partition columns count.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.spark.catalog.iceberg_layout import layout_of
from airflow_hive_opt.spark.catalog.table_facts import NOT_FOUND, columns_of, provider_of
from airflow_hive_opt.spark.session.spark_compat import active, condition_of
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.identifiers import quote_table
from airflow_hive_opt.statement.lake_formats import DELTA, HUDI, ICEBERG, UNTESTED_FORMATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

SESSION_CATALOG = "spark_catalog"
# The classes of tables that Delta's and Hudi's catalogs load.
_UNTESTED = {
    "org.apache.spark.sql.delta.catalog.DeltaTableV2": DELTA,
    "org.apache.spark.sql.hudi.catalog.HoodieInternalV2Table": HUDI,
}
WAP_BRANCH = "spark.wap.branch"
"""The setting with which a session reads and writes a branch of Iceberg's tables."""


@dataclass(frozen=True)
class Place:
    """A table's catalog, its namespace there, and its name, in the case of the statement."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @classmethod
    def of(cls, full_name: str) -> Place:
        """The place of a table by its :attr:`full_name`."""
        catalog, *namespace, name = full_name.split(".")
        return cls(catalog, tuple(namespace), name)

    @property
    def full_name(self) -> str:
        """``catalog.namespace.name``."""
        return ".".join((self.catalog, *self.namespace, self.name))


def load(session: SparkSession, place: Place) -> Any:
    """Spark's table, an object of the JVM; raises Spark's errors."""
    gateway: Any = session.sparkContext._gateway
    jvm: Any = session._jvm
    namespace = gateway.new_array(jvm.java.lang.String, len(place.namespace))
    for at, part in enumerate(place.namespace):
        namespace[at] = part
    identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, place.name)
    manager: Any = session._jsparkSession.sessionState().catalogManager()
    with active(session):  # Spark reads a catalog's settings from that session
        return manager.catalog(place.catalog).loadTable(identifier)


class LakeTables:
    """The tables of all catalogs but the session's; looks up each table once."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._tables: dict[Place, Table | None] = {}
        self._registered: dict[str, bool] = {}
        self._current = str(session.catalog.currentCatalog())

    def place(self, name: str) -> Place | None:
        """Where Spark looks for ``name``; ``None`` for the session's catalog.

        A name of one part may be a temporary view, which the caller looks up first.
        """
        first, *others = name.split(".")
        if others and first.lower() == "global_temp":
            return None
        if others and first != SESSION_CATALOG and self._is_registered(first):
            return Place(first, tuple(others[:-1]), others[-1])
        if self._current == SESSION_CATALOG or (others and first == SESSION_CATALOG):
            return None
        namespace = (first, *others[:-1]) if others else self._namespace()
        return Place(self._current, namespace, others[-1] if others else first)

    def table(self, place: Place) -> Table | None:
        """The table, or ``None`` if it does not exist; raises Spark's errors."""
        if place not in self._tables:
            self._tables[place] = self._look_up(place)
        return self._tables[place]

    def in_session_catalog(self, database: str, name: str) -> Table | None:
        """An Iceberg table of the session's catalog; ``None`` if it is not Iceberg's."""
        if not self._is_registered(SESSION_CATALOG):
            return None
        found = self.table(Place(SESSION_CATALOG, (database,), name))
        return found if found is not None and found.provider == ICEBERG else None

    def listing_its_files(self, table: Table, metadata: Any) -> Table:
        """A table of the metastore, described as Delta's or Hudi's if ``metadata`` names these.

        Such a table has no partitions of the metastore. Its partition columns are those of the
        metastore's entry, or if there are none, those that the registered catalog gives.
        """
        format_ = provider_of(metadata)
        if format_ not in UNTESTED_FORMATS:
            return table
        named = tuple(column.name for column in table.partition_columns)
        columns = table.columns
        if named or not columns:
            columns = self._columns_read(table.name) or table.all_columns
        size = UNKNOWN_SIZE if table.total_bytes is None else table.total_bytes
        return replace(
            table,
            columns=columns,
            partition_columns=(),
            partitions_in_metastore=True,
            total_bytes=size,
            provider=format_,
            clustered_by=named or self._identity_columns(table.name),
        )

    def _columns_read(self, name: str) -> tuple[Column, ...]:
        """The columns in the order in which Spark reads them, which the entry need not have.

        Empty if Spark can't read the table.
        """
        try:
            frame = self._session.table(quote_table(name))
            return tuple(columns_of(frame._jdf.queryExecution().analyzed().schema()))
        except (PySparkException, Py4JError) as error:  # the statement itself gives the reason
            log.debug("%s can't be read: %s", name, error)
            return ()

    def _identity_columns(self, name: str) -> tuple[str, ...]:
        """The partition columns that the registered session catalog gives, if there is one."""
        if not self._is_registered(SESSION_CATALOG):
            return ()
        database, _, short = name.rpartition(".")
        try:
            return _partitioned_by(load(self._session, Place(SESSION_CATALOG, (database,), short)))
        except (PySparkException, Py4JError) as error:
            log.debug("the partition columns of %s are not known: %s", name, error)
            return ()

    def _is_registered(self, catalog: str) -> bool:
        if catalog not in self._registered:
            conf = f"spark.sql.catalog.{catalog}"
            self._registered[catalog] = bool(self._session.conf.get(conf, ""))
        return self._registered[catalog]

    def _namespace(self) -> tuple[str, ...]:
        manager: Any = self._session._jsparkSession.sessionState().catalogManager()
        with active(self._session):
            return tuple(str(part) for part in manager.currentNamespace())

    def _look_up(self, place: Place) -> Table | None:
        try:
            return _described(self._session, place, load(self._session, place))
        except AnalysisException as error:
            if condition_of(error) in NOT_FOUND:
                return None
            raise


def is_iceberg(metadata: Any) -> bool:
    """Whether Spark's metadata of a table of the metastore names Iceberg.

    A table that Iceberg has made there has Hive as its provider.
    """
    if provider_of(metadata) == ICEBERG:
        return True
    kind = metadata.properties().get("table_type")
    return bool(kind.isDefined()) and str(kind.get()).lower() == ICEBERG


def _described(session: SparkSession, place: Place, found: Any) -> Table:
    columns = tuple(columns_of(found.schema()))
    kind, properties = str(found.getClass().getName()), found.properties()
    location = properties.get("location")
    table = Table(
        place.full_name,
        columns,
        total_bytes=UNKNOWN_SIZE,
        location=None if location is None else str(location),
    )
    if kind in _UNTESTED:
        return replace(table, provider=_UNTESTED[kind], clustered_by=_partitioned_by(found))
    if kind != "org.apache.iceberg.spark.source.SparkTable":
        return table
    iceberg = found.table()
    dotted = any("." in part for part in (*place.namespace, place.name))
    # Tables such as ``snapshots`` and ``files`` have no data files. The full name of a dotted one
    # can't be taken apart again.
    gateway: Any = session.sparkContext._gateway
    if dotted or is_instance_of(gateway, iceberg, "org.apache.iceberg.BaseMetadataTable"):
        return table
    snapshot = iceberg.currentSnapshot()
    size = "0" if snapshot is None else snapshot.summary().get("total-files-size")
    layout = layout_of(session._jvm, iceberg)
    return Table(
        place.full_name,
        columns,
        total_bytes=UNKNOWN_SIZE if size is None else int(size),
        location=table.location,
        provider=ICEBERG,
        clustered_by=layout.clustered_by,
        partitioned_by=layout.partitioned_by,
        partition_fields=() if is_a_version(found) else layout.partition_fields,
    )


def _partitioned_by(found: Any) -> tuple[str, ...]:
    """The columns of the identity transforms of a table, in lower case."""
    by_identity = (each for each in found.partitioning() if str(each.name()) == "identity")
    fields = (list(each.references()[0].fieldNames()) for each in by_identity)
    return tuple(str(names[0]).lower() for names in fields if len(names) == 1)


def reads_a_version(session: SparkSession, found: Any) -> bool:
    """Whether the session reads an Iceberg table otherwise than at its current snapshot."""
    return is_a_version(found) or bool(session.conf.get(WAP_BRANCH, None))


def is_a_version(found: Any) -> bool:
    """Whether the name selects a branch, a tag or an older snapshot of an Iceberg table."""
    return found.branch() is not None or found.snapshotId() is not None
