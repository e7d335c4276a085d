"""A client of a Hive Metastore over Thrift, Hive 2.3 or newer, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

from pymetastore.hive_metastore.ttypes import (
    ClientCapabilities,
    ClientCapability,
    GetTableRequest,
    GetTablesRequest,
)

from airflow_hive_opt.metastores.hive_tables import normal, partition_of
from airflow_hive_opt.metastores.looked_up import LookedUp
from airflow_hive_opt.metastores.metastore import KeySet, filter_is_cheaper
from airflow_hive_opt.metastores.partition_names import names_of, partition_name
from airflow_hive_opt.metastores.partitions import Partition, matching, parse_name
from airflow_hive_opt.metastores.thrift.addresses import addresses
from airflow_hive_opt.metastores.thrift.connection import (
    CallRejected,
    NoSuchObject,
    ThriftConnection,
    UnknownMethod,
)
from airflow_hive_opt.metastores.thrift.partition_filter import filters
from airflow_hive_opt.metastores.thrift.security import PLAIN, Security
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Table

log = logging.getLogger(__name__)

# On Derby, one call for 10,000 names takes seven times as long as ten calls for 1,000 names.
NAMES_A_CALL = 1_000
ALL = -1  # max_parts has 16 bits
# From Hive 3 on, a server describes some transactional tables only to clients that know them.
_CAPABILITIES = ClientCapabilities([ClientCapability.INSERT_ONLY_TABLES])


class ThriftMetastore(LookedUp):
    """A :class:`~airflow_hive_opt.metastores.metastore.Metastore`; for one thread.

    ``uris`` is a value of ``hive.metastore.uris``. ``timeout`` is in seconds. Unqualified names are
    in ``database``. Each table is looked up only once. ``security`` is what the server requires. It
    is a context manager that closes the connection at the end. Raises ``ValueError`` for wrong URIs
    and for files of the security that can't be read.
    """

    names_are_cheap = True

    def __init__(
        self,
        uris: str,
        database: str = "default",
        timeout: float = 60,
        security: Security = PLAIN,
    ) -> None:
        super().__init__(database)
        self._connection = ThriftConnection(addresses(uris), timeout, security=security)
        self._fetched = 0

    def __enter__(self) -> ThriftMetastore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def greet(self, patience: float) -> str:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        with self._connection.with_timeout(patience):
            found = self._connection.call("get_databases", self._database)
        return f"the database {self._database}" if found else f"no database {self._database}"

    def close(self) -> None:
        """Closes the connection; the next call opens it again."""
        self._connection.close()

    def default_location(self) -> str | None:
        """See :class:`~airflow_hive_opt.metastores.metastore.Remote`."""
        location = self._connection.call("get_database", "default").locationUri
        return normal(location) if location else None

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
        return [parse_name(name) for name in self._names(table)]

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

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return self._by_names(table, self._named(table, partitions))

    def existing(
        self, table: Table, partitions: Iterable[Partition]
    ) -> frozenset[tuple[str | None, ...]]:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        names = self._named(table, partitions)
        wanted = {parse_name(name).values for name in names}
        if len(names) <= NAMES_A_CALL:
            found = self._by_names(table, names)
        else:
            found = self.partition_names(table)
        return frozenset(part.values for part in found) & wanted

    def work(self) -> Work:
        """See :class:`~airflow_hive_opt.metastores.metastore.Metastore`."""
        return Work(metastore_calls=self._connection.calls, partitions_fetched=self._fetched)

    def _told_table(self, database: str, name: str) -> Any | None:
        try:
            try:
                request = GetTableRequest(dbName=database, tblName=name, capabilities=_CAPABILITIES)
                return self._connection.call("get_table_req", request).table
            except UnknownMethod:  # before Hive 2.3; from 4 on there is no get_table
                return self._connection.call("get_table", database, name)
        except NoSuchObject:
            return None

    def _told_tables(self, database: str, names: Sequence[str]) -> Iterable[Any]:
        try:
            request = GetTablesRequest(
                dbName=database, tblNames=list(names), capabilities=_CAPABILITIES
            )
            found: list[Any] = self._connection.call(
                "get_table_objects_by_name_req", request
            ).tables
        except (CallRejected, NoSuchObject, UnknownMethod) as error:
            log.debug("the tables of %s are looked up one by one: %s", database, error)
            return ()
        return found

    def _told_partitions(self, table: Table, partitions: Sequence[Partition]) -> Iterable[Any]:
        return self._raw_by_names(table, self._named(table, partitions))

    def _named_by(self, table: Table, keys: Sequence[KeySet]) -> list[Partition] | None:
        """The partitions whose names the keys determine.

        ``None`` if there are none: they may have other names.
        """
        if len(keys) > 1 or len(keys[0][1]) > NAMES_A_CALL:
            return None
        names = names_of(table.partition_columns, *keys[0])
        try:
            return (self._by_names(table, names) if names else None) or None
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

    def _by_names(self, table: Table, names: Sequence[str]) -> list[Partition]:
        return [partition_of(part) for part in self._raw_by_names(table, names)]

    def _raw_by_names(self, table: Table, names: Sequence[str]) -> list[Any]:
        found: list[Any] = []
        for start in range(0, len(names), NAMES_A_CALL):
            chunk = list(names[start : start + NAMES_A_CALL])
            found += self._ask("get_partitions_by_names", table, chunk)
        self._fetched += len(found)
        return found

    def _names(self, table: Table) -> list[str]:
        return list(self._ask("get_partition_names", table, ALL))

    def _named(self, table: Table, partitions: Iterable[Partition]) -> list[str]:
        columns = [column.name for column in table.partition_columns]
        return list(dict.fromkeys(partition_name(columns, part.values) for part in partitions))

    def _fetch(self, method: str, table: Table, *arguments: object) -> list[Partition]:
        found = self._ask(method, table, *arguments)
        self._fetched += len(found)
        return [partition_of(part) for part in found]

    def _ask(self, method: str, table: Table, *arguments: object) -> Any:
        database, _, name = table.name.rpartition(".")
        return self._connection.call(method, database or self._database, name, *arguments)
