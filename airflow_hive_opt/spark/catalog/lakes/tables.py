"""Tables of Spark's other catalogs, and those of the session's that list their own files."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.spark.catalog.lakes.formats import entry_format, is_path, loaded_format
from airflow_hive_opt.spark.catalog.lakes.key_indexes import with_indexes
from airflow_hive_opt.spark.catalog.lakes.loading import columns_and_location, load
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG, Place
from airflow_hive_opt.spark.catalog.table_facts import NOT_FOUND
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import active, condition_of
from airflow_hive_opt.statement.catalog import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath


class LakeTables:
    """The tables of all catalogs except the session catalog; looks up each table once.

    ``indexes`` is the folder of the key indexes.
    """

    def __init__(self, session: SparkSession, indexes: StoragePath | None = None) -> None:
        self._session = session
        self._indexes = indexes
        self._tables: dict[Place, Table | None] = {}
        self._registered: dict[str, bool] = {}
        self._current = str(session.catalog.currentCatalog())

    def place(self, name: str) -> Place | None:
        """Where Spark looks for ``name``; ``None`` for the session's catalog.

        A name of one part may be a temporary view, which the caller looks up first.
        """
        if self._current == SESSION_CATALOG and self._is_registered(SESSION_CATALOG):
            database, _, path = name.removeprefix(f"{SESSION_CATALOG}.").partition(".")
            if is_path(database, path):
                return Place(SESSION_CATALOG, (database,), path)
        first, *others = name.split(".")
        if others and first.lower() == "global_temp":
            return None
        if others and first != SESSION_CATALOG and self._is_registered(first):
            return Place(first, tuple(others[:-1]), others[-1])
        if self._current == SESSION_CATALOG or (others and first == SESSION_CATALOG):
            return None
        namespace = (first, *others[:-1]) if others else self._namespace
        return Place(self._current, namespace, others[-1] if others else first)

    def table(self, place: Place) -> Table | None:
        """The table, or ``None`` if it does not exist; raises Spark's errors."""
        if place not in self._tables:
            self._tables[place] = self._look_up(place)
        return self._tables[place]

    @property
    def is_session_catalog_current(self) -> bool:
        """Whether names of two parts are those of the session's catalog."""
        return self._current == SESSION_CATALOG

    @property
    def loads_session_catalog(self) -> bool:
        """Whether a format may load tables from the session's catalog."""
        return self._is_registered(SESSION_CATALOG)

    def in_session_catalog(self, database: str, name: str) -> Table | None:
        """A table that a format loads from the session's catalog; ``None`` if none does."""
        if not self.loads_session_catalog:
            return None
        found = self.table(Place(SESSION_CATALOG, (database,), name))
        return found if found is not None and found.provider else None

    def of_entry(self, table: Table, metadata: Any) -> Table:
        """A table of the metastore, described by the format that its entry names, if any."""
        format_ = entry_format(metadata)
        return table if format_ is None else format_.of_entry(self._session, table)

    def _is_registered(self, catalog: str) -> bool:
        if catalog not in self._registered:
            conf = f"spark.sql.catalog.{catalog}"
            self._registered[catalog] = bool(self._session.conf.get(conf, ""))
        return self._registered[catalog]

    @cached_property
    def _namespace(self) -> tuple[str, ...]:
        if is_remote(self._session):
            return _parts(str(self._session.catalog.currentDatabase()))
        manager: Any = self._session._jsparkSession.sessionState().catalogManager()
        with active(self._session):
            return tuple(str(part) for part in manager.currentNamespace())

    def _look_up(self, place: Place) -> Table | None:
        try:
            loaded = load(self._session, place)
            found = described(self._session, place, loaded)
            if found is None or self._indexes is None:
                return found
            return with_indexes(self._session, found, loaded, self._indexes)
        except AnalysisException as error:
            if condition_of(error) in NOT_FOUND:
                return None
            raise


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a name of Spark's, with backquotes where Spark writes them.

    >>> _parts("a.`b.c`.`d``e`")
    ('a', 'b.c', 'd`e')
    """
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in found)


def described(session: SparkSession, place: Place, loaded: Any) -> Table | None:
    """A loaded table for the planner, without its indexes; ``None`` if there is no such table."""
    columns, location = columns_and_location(loaded)
    table = Table(place.full_name, columns, total_bytes=UNKNOWN_SIZE, location=location)
    format_ = loaded_format(session, loaded)
    return table if format_ is None else format_.described(session, place, table, loaded)
