"""The metastore calls of the local task, and the choice of the cheapest call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

from airflow_hive_opt.metastores.partitions import Partition, Value
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Catalog, Table

_Own = TypeVar("_Own", bound="Remote")

KeySet = tuple[Sequence[int], frozenset[tuple[Value, ...]]]
"""Positions among a table's partition columns, and the tuples of values wanted there.

The tuples have one value for each position.
"""


class MetastoreError(Exception):
    """A metastore can't be reached or refuses a call; the message says which, where and why."""


class PartitionCatalog(Protocol):
    """The metastore calls of a local task.

    They do not fetch all partition objects if names or a filter are enough. The values of a
    :class:`~airflow_hive_opt.metastores.partitions.Partition` are texts, as in the metastore. Every
    method raises :class:`MetastoreError`.
    """

    @property
    def names_are_cheap(self) -> bool:
        """Whether all names cost a call or two; if not, each one costs as much as a partition."""

    def partition_count(self, table: Table, beyond: int = 1) -> int:
        """The number of the table's partitions.

        A metastore that fetches partitions to count them may stop at any number above ``beyond``.
        """

    def partition_names(self, table: Table) -> list[Partition]:
        """All partitions, from their names alone, without location and statistics; one call."""

    def partitions_by_keys(
        self, table: Table, keys: Sequence[KeySet], total: int
    ) -> list[Partition]:
        """The partitions that match every key set.

        They are those that :func:`~airflow_hive_opt.metastores.partitions.matching` selects from
        all partitions. They have location and statistics if the metastore returned partition
        objects, but not if it returned names. ``total``, the result of :meth:`partition_count`,
        decides which call to use.
        """


class Metastore(Catalog, PartitionCatalog, Protocol):
    """The lookup of tables and of their partitions."""

    def work(self) -> Work | None:
        """The calls and fetched partitions so far, or ``None`` if they are not counted."""


class Remote(Metastore, ABC):
    """A metastore with a client of its own, beside Spark's; a context manager that closes it.

    Unqualified names are in ``database``. Each table is looked up only once.
    """

    def __init__(self, database: str) -> None:
        self._database = database.lower()
        self._tables: dict[tuple[str, str], Table | None] = {}
        self._fetched = 0

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        key = self._parts(name.lower())
        if key not in self._tables:
            self._tables[key] = self._look_up(*key)
        return self._tables[key]

    @abstractmethod
    def first_names(self, table: Table, at_most: int) -> tuple[int, list[Partition] | None]:
        """The number as of ``partition_count``, and all partitions unless more than ``at_most``."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection; the next call opens another."""

    @abstractmethod
    def _look_up(self, database: str, name: str) -> Table | None:
        """Asks for the table; ``None`` if it does not exist."""

    def _parts(self, name: str) -> tuple[str, str]:
        """The database and the short name of a table."""
        database, _, short = name.rpartition(".")
        return database or self._database, short


# In milliseconds: Hive 2.3 on PostgreSQL over loopback, see docs/how-it-works/metastore.md.
FILTER_CALL = 9.0
FILTER_PARTITION = 0.0008
FILTER_COMPARISON = 0.000013
ALL_NAMES_CALL = 5.0
ALL_NAMES_PARTITION = 0.002


def filter_is_cheaper(keys: int, total: int) -> bool:
    """Whether a filter with ``keys`` values on ``total`` partitions is cheaper than all names.

    The metastore turns a filter into SQL that compares every partition with every key. Names are
    short and are matched in this process. So a filter is cheaper for few keys of many partitions.

    >>> filter_is_cheaper(10, 10_000), filter_is_cheaper(400, 10_000), filter_is_cheaper(10, 300)
    (True, False, False)
    """
    by_filter = FILTER_CALL + (FILTER_PARTITION + FILTER_COMPARISON * keys) * total
    return by_filter < ALL_NAMES_CALL + ALL_NAMES_PARTITION * total
