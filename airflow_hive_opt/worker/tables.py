"""The tables of a statement, by the names that they have in a new session of Spark."""

from __future__ import annotations

from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.tables import references
from airflow_hive_opt.worker.unanswered import Unanswered

_SESSION_CATALOG = "spark_catalog."


class WorkerTables:
    """A :class:`~airflow_hive_opt.statement.catalog.Catalog` of the metastore's own tables.

    A new session's current database is ``default``. What is not a table of the metastore, such as a
    view or a table of another catalog, is left to Spark.
    """

    def __init__(self, metastore: Remote) -> None:
        self._metastore = metastore

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`; raises ``Unanswered``."""
        known = name.lower().removeprefix(_SESSION_CATALOG)
        full = known if "." in known else f"default.{known}"
        if full.count(".") > 1:
            raise Unanswered(f"{name} is of another catalog")
        found = self._metastore.table(full)
        if found is not None and (found.view is not None or found.definition is not None):
            raise Unanswered(f"{name} is a view")
        return found

    def look_up_together(self, sql: str) -> None:
        """Looks up the tables that a statement reads; raises ``Unanswered`` if one is not found."""
        for reference in references(sql):
            if reference.versioned:
                raise Unanswered(f"a version of {reference.name} is read")
            if self.table(reference.name) is None:
                raise Unanswered(f"{reference.name} is no table of the metastore")

    def located(self, sql: str) -> dict[str, str | None]:
        """The location of each table that a statement reads, by the name that a session gives."""
        names = {reference.name.lower() for reference in references(sql)}
        full = (name if "." in name else f"default.{name}" for name in names)
        return {name: table.location for name in full if (table := self.table(name)) is not None}
