"""The tables of a statement: those of the metastore, and those that list their own files.

Spark's settings say in which catalog it finds a table. The worker knows those of the connection and
of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.metastores.statement_catalog import StatementCatalog
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.lake_formats import DELTA, ICEBERG
from airflow_hive_opt.worker.lakes.lake_table import LakeTable
from airflow_hive_opt.worker.settings import SESSION_CATALOG, other_catalogs
from airflow_hive_opt.worker.unanswered import NotUnderstood, Unanswered

if TYPE_CHECKING:
    from airflow_hive_opt.documents.storage import StoragePath

_OF_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
# The session's catalog that reads tables of the format.
_IN_SESSION = {
    ICEBERG: "org.apache.iceberg.spark.SparkSessionCatalog",
    DELTA: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_LIBRARIES = {ICEBERG: "pyiceberg", DELTA: "deltalake"}
_METASTORES = "spark.hadoop.hive.metastore.uris"
# Properties of a catalog that do not decide which table it gives.
_WITHOUT_EFFECT = frozenset({"type", "catalog-impl", "io-impl", "cache-enabled"})


@dataclass(frozen=True)
class StatementTables:
    """A :class:`~airflow_hive_opt.statement.catalog.Catalog`; use it for one statement.

    ``own`` are the metastore's tables, ``settings`` Spark's as far as they are known.
    ``has_storage`` says that ``open_path`` has a connection of its own, so that a catalog's
    credentials are not needed.
    """

    own: StatementCatalog
    metastore: Remote
    settings: Mapping[str, str]
    open_path: Callable[[str], StoragePath]
    has_storage: bool = False
    _lakes: dict[str, LakeTable] = field(default_factory=dict)
    _written: dict[str, str] = field(default_factory=dict)

    def look_up_together(self, sql: str) -> None:
        """Looks up the tables of the metastore that a statement reads, in few round trips."""
        self.own.look_up_together(sql)

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`.

        Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered` for a table of another format
        that can't be read here.
        """
        first = name.split(".")[0]
        if "." in name and first.lower() in self._other_catalogs():
            return self._in_catalog(name).described
        found = self.own.table(name)
        if found is None or not found.provider:
            return found
        return self._in_metastore(found).described

    def lake(self, table: Table) -> LakeTable:
        """The lake table that described ``table``; raises ``NotUnderstood`` if there is none."""
        found = self._lakes.get(table.name.lower())
        if found is None:
            raise NotUnderstood(f"{table.name}, a table of {table.provider or 'files'}")
        return found

    def _other_catalogs(self) -> set[str]:
        return {name.lower() for name in other_catalogs(self.settings)} - {"spark_catalog"}

    def _in_metastore(self, table: Table) -> LakeTable:
        """A table whose entry in the metastore is of another format."""
        format_, setting = table.provider, self.settings.get(SESSION_CATALOG)
        if format_ not in _IN_SESSION:
            raise Unanswered(
                f"{table.name} is a table of {format_}, a format that the worker does not read"
            )
        if setting != _IN_SESSION[format_]:
            raise Unanswered(
                f"{table.name} is a table of {format_}, and {SESSION_CATALOG} is not "
                f"{_IN_SESSION[format_]}"
            )
        name = f"spark_catalog.{table.name}" if format_ == ICEBERG else table.name
        if name not in self._lakes:
            _check_installed(format_, table.name)
            self._lakes[name] = self._opened(format_, name, table)
        return self._lakes[name]

    def _opened(self, format_: str, name: str, table: Table) -> LakeTable:
        if format_ == ICEBERG:
            return self._by_entry(name, table.name)
        if format_ == DELTA:
            from airflow_hive_opt.worker.lakes import delta

            if not table.location:
                raise Unanswered(f"the location of {table.name} is not known")
            return delta.in_folder(name, table.location, self.open_path)
        raise NotImplementedError(f"{name} is a table of {format_}, which has no module here")

    def _in_catalog(self, name: str) -> LakeTable:
        """A table of one of Spark's other catalogs."""
        key = name.lower()
        if self._written.setdefault(key, name) != name and key != name:
            raise Unanswered(f"the statement writes the name {name} in two ways, differing in case")
        if key not in self._lakes:
            self._lakes[key] = self._looked_up(self._written[key])
        return self._lakes[key]

    def _looked_up(self, name: str) -> LakeTable:
        from airflow_hive_opt.worker.lakes import iceberg

        catalog, *identifier = name.split(".")
        prefix = f"spark.sql.catalog.{catalog}"
        properties = {
            setting.removeprefix(f"{prefix}."): value
            for setting, value in self.settings.items()
            if setting.startswith(f"{prefix}.")
        }
        kind = properties.get("type", "hive")
        if self.settings.get(prefix) != _OF_ICEBERG or "catalog-impl" in properties:
            raise Unanswered(f"only Spark can read tables of the catalog {catalog}")
        self._check_branch()
        _check_installed(ICEBERG, name)
        own = {key: text for key, text in properties.items() if key not in _WITHOUT_EFFECT}
        if kind == "rest":
            given = self.open_path if self.has_storage else None
            return iceberg.of_rest_catalog(name, catalog, identifier, own, given)
        if kind == "hadoop" and own.keys() == {"warehouse"}:
            folder = "/".join((own["warehouse"].rstrip("/"), *identifier))
            return iceberg.in_folder(name, folder, self.open_path)
        if kind == "hive" and len(identifier) == 2 and self._is_own_metastore(own):
            return self._by_entry(name, ".".join(identifier))
        raise Unanswered(f"only Spark can read tables of the catalog {catalog}")

    def _check_branch(self) -> None:
        for setting in self.settings:
            if setting.startswith("spark.wap."):
                raise Unanswered(
                    f"{setting} is set, so Spark may read another branch of Iceberg tables"
                )

    def _is_own_metastore(self, properties: Mapping[str, str]) -> bool:
        """Whether a catalog in a metastore is in the session's."""
        uri = properties.get("uri", self.settings.get(_METASTORES))
        return properties.keys() <= {"uri", "warehouse"} and uri == self.settings.get(_METASTORES)

    def _by_entry(self, name: str, own_name: str) -> LakeTable:
        """An Iceberg table by its entry in the metastore, which names its current metadata."""
        from airflow_hive_opt.worker.lakes import iceberg

        self._check_branch()
        return iceberg.in_metastore(name, own_name, self.metastore, self.open_path)


def _check_installed(format_: str, name: str) -> None:
    library = _LIBRARIES[format_]
    if find_spec(library) is None:
        raise Unanswered(
            f"{name} is a table of {format_}, and {library} is not installed: "
            f"pip install 'airflow-hive-opt[{format_}]'"
        )
