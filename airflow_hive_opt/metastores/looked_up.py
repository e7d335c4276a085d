"""Caches the tables that a metastore of Hive tables has returned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from airflow_hive_opt.metastores.hive_tables import storage_of, storage_of_partition, table_of
from airflow_hive_opt.metastores.partitions import Partition, value_of
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Table


class LookedUp(ABC):
    """The tables of a metastore; unqualified names are in ``database``.

    The abstract methods return objects with the fields of Thrift's.
    """

    def __init__(self, database: str) -> None:
        self._database = database.lower()
        self._tables: dict[str, Table | None] = {}
        self._storages: dict[str, Storage | None] = {}

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        key = self._key(name)
        if key not in self._tables:
            self._keep(key, self._told_table(*key.rsplit(".", 1)))
        return self._tables[key]

    def look_up(self, names: Iterable[str]) -> None:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`.

        A table that is alone in its database, or that the call for several does not return, is
        looked up alone later.
        """
        databases: dict[str, list[str]] = {}
        for key in sorted(set(map(self._key, names)) - self._tables.keys()):
            database, _, short = key.rpartition(".")
            databases.setdefault(database, []).append(short)
        for database, shorts in databases.items():
            if len(shorts) > 1:
                for found in self._told_tables(database, shorts):
                    self._keep(f"{database}.{found.tableName}".lower(), found)

    def storage(self, table: Table) -> Storage | None:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`; without a call."""
        return self._storages.get(table.name)

    def partition_storages(
        self, table: Table, partitions: Sequence[Partition]
    ) -> list[Storage | None]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        of = self._storages.get(table.name)
        if of is None:
            return [None] * len(partitions)
        found = {
            tuple(map(value_of, part.values)): storage_of_partition(of, part)
            for part in self._told_partitions(table, partitions)
        }
        return [found.get(part.values) for part in partitions]

    def _key(self, name: str) -> str:
        database, _, short = name.lower().rpartition(".")
        return f"{database or self._database}.{short}"

    def _keep(self, key: str, found: Any | None) -> None:
        self._tables[key] = None if found is None else table_of(found)
        self._storages[key] = None if found is None else storage_of(found)

    @abstractmethod
    def _told_table(self, database: str, name: str) -> Any | None:
        """A table; ``None`` if it does not exist."""

    @abstractmethod
    def _told_tables(self, database: str, names: Sequence[str]) -> Iterable[Any]:
        """The given tables of one database, as far as one call for all of them returns them."""

    @abstractmethod
    def _told_partitions(self, table: Table, partitions: Sequence[Partition]) -> Iterable[Any]:
        """The given partitions, without those that do not exist."""
