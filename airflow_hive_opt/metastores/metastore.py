"""The metastore calls of the local task, and the choice of the cheapest call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Protocol, TypeVar

from airflow_hive_opt.metastores.partitions import Partition, Value
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.metastores.work import Work
from airflow_hive_opt.statement.catalog import Catalog, Table

_Own = TypeVar("_Own")

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
        """Whether all names cost a call or two; if not, each name costs as much as a partition."""

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

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """The given partitions that still exist, with location and statistics."""

    def existing(
        self, table: Table, partitions: Iterable[Partition]
    ) -> frozenset[tuple[str | None, ...]]:
        """The values of the given partitions that exist in the metastore.

        One call for up to 1,000 partitions.
        """

    def work(self) -> Work | None:
        """The calls and fetched partitions so far, or ``None`` if they are not counted."""


class Remote(Metastore, Protocol):
    """A metastore with a client of its own, beside Spark's."""

    def greet(self, patience: float) -> str:
        """Checks that the server answers within about ``patience`` seconds, without a retry.

        Returns whether it has the client's database, in words.
        """

    def first_names(self, table: Table, at_most: int) -> tuple[int, list[Partition] | None]:
        """The number of partitions as ``partition_count`` tells it, and all of them if few.

        ``None`` if there are more than ``at_most``.
        """

    def look_up(self, names: Iterable[str]) -> None:
        """Looks up tables for later calls of ``table``, in as few round trips as it can."""

    def storage(self, table: Table) -> Storage | None:
        """How the files of a table that this client looked up are read; ``None`` for a view."""

    def partition_storages(
        self, table: Table, partitions: Sequence[Partition]
    ) -> list[Storage | None]:
        """How the files of each of the partitions are read; ``None`` for one that is gone."""

    def default_location(self) -> str | None:
        """The location of the database ``default``."""

    def close(self) -> None:
        """Closes the connection; the next call opens another."""

    def __enter__(self: _Own) -> _Own:
        """The metastore itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Closes the connection."""


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
