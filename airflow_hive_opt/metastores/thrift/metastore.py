"""A client of a Hive Metastore over Thrift, Hive 2.3 or newer, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pymetastore.hive_metastore.ttypes import GetTableRequest

from airflow_hive_opt.metastores.hive_tables import partition_of, table_of
from airflow_hive_opt.metastores.metastore import KeySet, Remote, filter_is_cheaper
from airflow_hive_opt.metastores.partitions import Partition, matching, names_of, parse_name
from airflow_hive_opt.metastores.thrift.connection import (
    CallRejected,
    NoSuchObject,
    ThriftConnection,
    UnknownMethod,
    addresses,
)
from airflow_hive_opt.metastores.thrift.partition_filter import filters
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Table

log = logging.getLogger(__name__)

# On Derby, one call for 10,000 names takes seven times as long as ten calls for 1,000 names.
NAMES_A_CALL = 1_000
ALL = -1  # max_parts has 16 bits


class ThriftMetastore(Remote):
    """A :class:`~airflow_hive_opt.metastores.metastore.Remote`; for one thread.

    ``uris`` is a value of ``hive.metastore.uris``. ``timeout`` is in seconds.
    """

    names_are_cheap = True

    def __init__(self, uris: str, database: str = "default", timeout: float = 60) -> None:
        super().__init__(database)
        self._connection = ThriftConnection(addresses(uris), timeout)

    def greet(self, patience: float) -> None:
        """Checks that the server answers within ``patience`` seconds, without a retry.

        Raises :class:`~airflow_hive_opt.metastores.metastore.MetastoreError`.
        """
        with self._connection.with_timeout(patience):
            self._connection.call("get_databases", "default")

    def close(self) -> None:
        """Closes the connection; the next call opens it again."""
        self._connection.close()

    def partition_count(
        self,
        table: Table,
        beyond: int = 1,  # noqa: ARG002 - counting fetches nothing
    ) -> int:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return int(self._ask("get_num_partitions_by_filter", table, ""))

    def first_names(self, table: Table, at_most: int) -> tuple[int, list[Partition] | None]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        count = self.partition_count(table)
        return count, self.partition_names(table) if count <= at_most else None

    def partition_names(self, table: Table) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return [parse_name(name) for name in self._ask("get_partition_names", table, ALL)]

    def partitions_by_keys(
        self, table: Table, keys: Sequence[KeySet], total: int
    ) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`.

        It fetches them by name if the keys determine the names. Otherwise it uses a filter or all
        names, as :func:`~airflow_hive_opt.metastores.metastore.filter_is_cheaper` decides. It
        matches the returned partitions again, because a metastore on MySQL ignores case.
        """
        if any(not tuples for _, tuples in keys):
            return []
        types = [column.type for column in table.partition_columns]
        wanted = sum(len(tuples) * len(positions) for positions, tuples in keys)
        found = self._named_by(table, keys)
        if found is None and filter_is_cheaper(wanted, total):
            found = self._by_filter(table, keys)
        if found is None:
            found = self.partition_names(table)
        return list(dict.fromkeys(matching(found, types, keys)))

    def work(self) -> Work:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return Work(metastore_calls=self._connection.calls, partitions_fetched=self._fetched)

    def _look_up(self, database: str, name: str) -> Table | None:
        try:
            try:
                request = GetTableRequest(dbName=database, tblName=name)
                found = self._connection.call("get_table_req", request).table
            except UnknownMethod:  # before Hive 2.3; from 4 on there is no get_table
                found = self._connection.call("get_table", database, name)
        except NoSuchObject:
            return None
        return table_of(found)

    def _named_by(self, table: Table, keys: Sequence[KeySet]) -> list[Partition] | None:
        """The partitions whose names the keys determine; ``None`` if others are possible."""
        if len(keys) > 1 or len(keys[0][1]) > NAMES_A_CALL:
            return None
        names = names_of(table.partition_columns, *keys[0])
        if not names:
            return None
        try:
            return self._fetch("get_partitions_by_names", table, names) or None
        except (CallRejected, NoSuchObject) as error:
            log.info("%s: trying another call", error)
            return None

    def _by_filter(self, table: Table, keys: Sequence[KeySet]) -> list[Partition] | None:
        """The partitions, or ``None`` if filters can't express it or the server refuses them."""
        texts = filters(table.partition_columns, keys)
        if texts is None:
            return None
        found: list[Partition] = []
        try:
            for text in texts:
                found += self._fetch("get_partitions_by_filter", table, text, ALL)
        except (CallRejected, UnknownMethod) as error:
            # a partition named 'x' of an int column is enough for that
            log.info("%s: listing names instead", error)
            return None
        return found

    def _fetch(self, method: str, table: Table, *arguments: object) -> list[Partition]:
        found = self._ask(method, table, *arguments)
        self._fetched += len(found)
        return [partition_of(part) for part in found]

    def _ask(self, method: str, table: Table, *arguments: object) -> Any:
        return self._connection.call(method, *self._parts(table.name), *arguments)
