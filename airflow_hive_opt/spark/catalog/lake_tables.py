"""Tables of Spark's other catalogs, of which Iceberg's keep their own list of files.

Iceberg stores for each file its partition and the lowest and highest value of its columns. A
condition on the source column of a partition transform, or on a column of the sort order,
therefore skips files, and Spark passes it on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from airflow_hive_opt.spark.catalog.table_facts import NOT_FOUND, columns_of
from airflow_hive_opt.spark.session.spark_compat import active, condition_of
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_CATALOG = "spark_catalog"
ICEBERG = "iceberg"
UNKNOWN_SIZE = 2**63 - 1
"""Bytes: Spark's own size of a table without statistics, so that it supplies no keys."""


@dataclass(frozen=True)
class Place:
    """A table's catalog, its namespace there, and its name, in the case of the statement."""

    catalog: str
    namespace: tuple[str, ...]
    name: str

    @property
    def full_name(self) -> str:
        """``catalog.namespace.name``."""
        return ".".join((self.catalog, *self.namespace, self.name))


class LakeTables:
    """The tables of all catalogs but the session's; looks up each table once."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._manager: Any = session._jsparkSession.sessionState().catalogManager()
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
            with active(self._session):  # Spark reads a catalog's settings from that session
                self._tables[place] = self._look_up(place)
        return self._tables[place]

    def in_session_catalog(self, database: str, name: str) -> Table | None:
        """An Iceberg table of the session's catalog; ``None`` if it is not Iceberg's."""
        if not self._is_registered(SESSION_CATALOG):
            return None
        found = self.table(Place(SESSION_CATALOG, (database,), name))
        return found if found is not None and found.provider else None

    def _is_registered(self, catalog: str) -> bool:
        if catalog not in self._registered:
            conf = f"spark.sql.catalog.{catalog}"
            self._registered[catalog] = bool(self._session.conf.get(conf, ""))
        return self._registered[catalog]

    def _namespace(self) -> tuple[str, ...]:
        with active(self._session):
            return tuple(str(part) for part in self._manager.currentNamespace())

    def _look_up(self, place: Place) -> Table | None:
        gateway: Any = self._session.sparkContext._gateway
        jvm: Any = self._session._jvm
        namespace = gateway.new_array(jvm.java.lang.String, len(place.namespace))
        for at, part in enumerate(place.namespace):
            namespace[at] = part
        identifier = jvm.org.apache.spark.sql.connector.catalog.Identifier.of(namespace, place.name)
        try:
            found = self._manager.catalog(place.catalog).loadTable(identifier)
        except AnalysisException as error:
            if condition_of(error) in NOT_FOUND:
                return None
            raise
        return _described(place, found)


def is_iceberg(metadata: Any) -> bool:
    """Whether Spark's metadata of a table of the metastore names Iceberg.

    A table that Iceberg has made there has Hive as its provider.
    """
    if metadata.provider().contains(ICEBERG):
        return True
    kind = metadata.properties().get("table_type")
    return bool(kind.isDefined()) and str(kind.get()).lower() == ICEBERG


def _described(place: Place, found: Any) -> Table:
    columns = tuple(columns_of(found.schema()))
    kind, properties = str(found.getClass().getName()), found.properties()
    location = properties.get("location")
    table = Table(
        place.full_name,
        columns,
        total_bytes=UNKNOWN_SIZE,
        location=None if location is None else str(location),
    )
    if kind != "org.apache.iceberg.spark.source.SparkTable":
        return table
    iceberg = found.table()
    if _is_metadata(iceberg):
        return table
    snapshot = iceberg.currentSnapshot()
    size = "0" if snapshot is None else snapshot.summary().get("total-files-size")
    partitioned_by = tuple(dict.fromkeys(_sources(iceberg, iceberg.spec())))
    sorted_by = _sources(iceberg, iceberg.sortOrder())
    return Table(
        place.full_name,
        columns,
        total_bytes=UNKNOWN_SIZE if size is None else int(size),
        location=table.location,
        provider=ICEBERG,
        clustered_by=tuple(dict.fromkeys((*partitioned_by, *sorted_by))),
        partitioned_by=partitioned_by,
    )


def _is_metadata(iceberg: Any) -> bool:
    """Whether it is a table such as ``snapshots`` or ``files``, which has no data files."""
    kind = iceberg.getClass()
    while kind is not None:
        if str(kind.getSimpleName()) == "BaseMetadataTable":
            return True
        kind = kind.getSuperclass()
    return False


def _sources(iceberg: Any, layout: Any) -> Iterator[str]:
    """The columns of a partition spec or of a sort order, in lower case."""
    schema = iceberg.schema()
    for field in layout.fields():
        name = str(schema.findColumnName(field.sourceId()))
        if "." not in name and str(field.transform()) != "void":
            yield name.lower()
