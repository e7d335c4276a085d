"""A metastore that reads a ``TABLES.json`` document, for offline planning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_hive_opt.metastores.metastore import KeySet, MetastoreError
from airflow_hive_opt.metastores.partitions import Partition, matching, value_of
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import JsonCatalog, Table


class JsonMetastore:
    """A :class:`~airflow_hive_opt.metastores.metastore.Metastore` of a catalog's tables.

    Raises :class:`~airflow_hive_opt.metastores.metastore.MetastoreError` for a table whose entry
    does not list its ``partitions``.
    """

    names_are_cheap = True

    def __init__(self, catalog: JsonCatalog) -> None:
        self._catalog = catalog

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        return self._catalog.table(name)

    def partition_count(
        self,
        table: Table,
        beyond: int = 1,  # noqa: ARG002 - counting fetches nothing
    ) -> int:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return len(self._partitions(table))

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return [Partition(part.values) for part in self._partitions(table)]

    def partitions_by_keys(
        self,
        table: Table,
        keys: Sequence[KeySet],
        total: int,  # noqa: ARG002 - there is no cheaper call to choose
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        types = [column.type for column in table.partition_columns]
        return list(matching(self._partitions(table), types, keys))

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        wanted = {part.values for part in partitions}
        return [part for part in self._partitions(table) if part.values in wanted]

    def existing(
        self, table: Table, partitions: Iterable[Partition]
    ) -> frozenset[tuple[str | None, ...]]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return frozenset(part.values for part in self.partitions_by_names(table, partitions))

    def work(self) -> Work:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`; there are no calls."""
        return Work()

    def _partitions(self, table: Table) -> list[Partition]:
        found = self._catalog.table(table.name)
        if found is None or found.partitions is None:
            raise MetastoreError(
                f'the catalog file does not list the partitions of {table.name}: add "partitions": '
                '[{"values": [...]}] to its entry'
            )
        return [
            Partition(
                tuple(map(value_of, part.values)), rows=part.rows, bytes=part.total_bytes or None
            )
            for part in found.partitions
        ]
