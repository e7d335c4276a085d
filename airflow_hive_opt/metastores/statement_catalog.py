"""The planner's catalog of one statement's tables, from a metastore alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.metastores.metastore import MetastoreError, Remote
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Table, ViewDefinition
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.tables import tables_of

_SESSION_CATALOG = "spark_catalog"
_TEMPORARY = ("global_temp", "session", "system")


class Elsewhere(MetastoreError):
    """A name that does not stand for a table of this metastore, so only Spark can look it up."""


class StatementCatalog:
    """A :class:`~airflow_hive_opt.statement.catalog.Catalog`; use it for one statement.

    Unqualified names are in ``database``. ``catalogs`` are the names of Spark's other catalogs,
    from its settings ``spark.sql.catalog.NAME``. A table of such a catalog, and any other name of
    three parts, raises :class:`Elsewhere`, while ``None`` means that there is no such table.

    ``measured`` gives the bytes of a table's files, or ``None``. As in Spark, it is called for a
    table without partitions and without statistics that Spark's own reader reads. The size of a
    view that Spark has made is the sum of its tables'.
    """

    def __init__(
        self,
        metastore: Remote,
        database: str = "default",
        catalogs: Iterable[str] = (),
        measured: Callable[[Storage], int | None] = lambda _: None,
    ) -> None:
        self._metastore = metastore
        self._database = database.lower()
        self._elsewhere = {*_TEMPORARY, *(name.lower() for name in catalogs)} - {_SESSION_CATALOG}
        self._measured = measured
        self._tables: dict[str, Table | None] = {}

    def look_up_together(self, sql: str) -> None:
        """Looks up the tables that a statement reads, and those below its views.

        Each level of views takes one round trip for each database, if the metastore has such a
        call. Raises :class:`~airflow_hive_opt.statement.errors.PlanError` and
        :class:`~airflow_hive_opt.metastores.metastore.MetastoreError`.
        """
        waiting: Collection[str] = tables_of(sql, self._database).reads
        seen: set[str] = set()
        while waiting:
            seen.update(waiting)
            own = [name for name in map(self._own_name, waiting) if name is not None]
            self._metastore.look_up(own)
            tables = [self._metastore.table(name) for name in own]
            definitions = (table.definition for table in tables if table and table.definition)
            waiting = {name for each in definitions for name in _tables_in(each)} - seen

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`; raises :class:`Elsewhere`."""
        own = self._own_name(name)
        if own is None:
            raise Elsewhere(f"{name} is not a table of the metastore")
        if own not in self._tables:
            found = self._metastore.table(own)
            self._tables[own] = found  # what a view that reads itself finds below
            if found is not None and found.total_bytes is None:
                self._tables[own] = replace(found, total_bytes=self._bytes_of(found))
        return self._tables[own]

    def _own_name(self, name: str) -> str | None:
        """``database.table`` in lower case; ``None`` if the name leads elsewhere."""
        first, *others = name.lower().split(".")
        if others and first in self._elsewhere:
            return None
        if first == _SESSION_CATALOG and len(others) == 2:
            return ".".join(others)
        if len(others) > 1:
            return None
        return f"{first}.{others[0]}" if others else f"{self._database}.{first}"

    def _bytes_of(self, table: Table) -> int | None:
        if table.definition is not None:
            below = sum(map(self._bytes_below, _tables_in(table.definition)))
            return min(below, UNKNOWN_SIZE)
        storage = self._metastore.storage(table)
        if storage is None or table.partition_columns or table.provider:
            return None
        return self._measured(storage)

    def _bytes_below(self, name: str) -> int:
        """The size of a table that a view reads; very large if it is not known."""
        own = self._own_name(name)
        table = None if own is None else self.table(own)
        if table is None:
            return UNKNOWN_SIZE
        is_large = table.partition_columns or table.view is not None
        return table.total_bytes or (UNKNOWN_SIZE if table.total_bytes is None and is_large else 0)


def _tables_in(definition: ViewDefinition) -> tuple[str, ...]:
    """The tables that a view reads; none if its text can't be parsed, and so not planned."""
    try:
        return tables_of(definition.text, definition.database).reads
    except (PlanError, RecursionError):
        return ()
