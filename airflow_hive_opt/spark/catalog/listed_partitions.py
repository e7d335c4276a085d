"""Partitions by their names alone, for the catalogs of Spark, which can only list them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from airflow_hive_opt.metastores.metastore import KeySet
from airflow_hive_opt.metastores.partitions import Partition, matching, parse_name
from airflow_hive_opt.statement.catalog import Table


class ListedPartitions(ABC):
    """Lists the names of a table once; a subclass says how, in ``_list_names``."""

    names_are_cheap = True

    def __init__(self) -> None:
        self._names: dict[str, list[Partition]] = {}

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        if table.name not in self._names:
            self._names[table.name] = [parse_name(name) for name in self._list_names(table)]
        return self._names[table.name]

    def partition_count(
        self,
        table: Table,
        beyond: int = 1,  # noqa: ARG002 - all names are listed, once
    ) -> int:
        """The number of names."""
        return len(self.partition_names(table))

    def partitions_by_keys(
        self,
        table: Table,
        keys: Sequence[KeySet],
        total: int,  # noqa: ARG002 - the names are here already: counting listed them
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        types = [column.type for column in table.partition_columns]
        return list(matching(self.partition_names(table), types, keys))

    @abstractmethod
    def _list_names(self, table: Table) -> Iterable[str]:
        """The names of the table's partitions."""
