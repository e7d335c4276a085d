"""What the local task asks of a metastore, and which way of asking is cheap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from airflow_hive_opt.runtime.partitions import Partition, Value
from airflow_hive_opt.runtime.report import Work
from airflow_hive_opt.statement.catalog import Catalog, Table

KeySet = tuple[Sequence[int], frozenset[tuple[Value, ...]]]
"""Positions among a table's partition columns, and the tuples of values wanted there."""


class MetastoreError(Exception):
    """A metastore that can't be reached or refuses a question; says which, where and why."""


class PartitionCatalog(Protocol):
    """What a local task asks; never every partition object where names or a filter do.

    A :class:`~airflow_hive_opt.runtime.partitions.Partition`'s values are texts, as the metastore
    has them. Every method raises :class:`MetastoreError`.
    """

    def partition_count(self, table: Table) -> int:
        """How many partitions the table has."""

    def partition_names(self, table: Table) -> list[Partition]:
        """Every partition by its name alone: one call, cheap strings."""

    def partitions_by_keys(
        self, table: Table, keys: Sequence[KeySet], total: int
    ) -> list[Partition]:
        """The partitions that every key set calls for.

        As :func:`~airflow_hive_opt.runtime.partitions.matching` would choose them from all, with
        location and statistics where objects came, by their names alone where names did.
        ``total``, as :meth:`partition_count` has it, decides how to ask.
        """


class Metastore(Catalog, PartitionCatalog, Protocol):
    """Tables and partitions."""

    def partitions_by_names(self, table: Table, partitions: Iterable[Partition]) -> list[Partition]:
        """The given partitions, with location and statistics; those that are gone are left out."""

    def existing(
        self, table: Table, partitions: Iterable[Partition]
    ) -> frozenset[tuple[str | None, ...]]:
        """The values of those given partitions that the metastore has; one call, for 1 or 1,000."""

    def work(self) -> Work | None:
        """What was asked so far; ``None`` where nothing tells."""


# Milliseconds, of a Hive 2.3 metastore on PostgreSQL over loopback: see docs/metastore.md.
FILTER_CALL = 9.0
FILTER_PARTITION = 0.0008
FILTER_COMPARISON = 0.000013
ALL_NAMES_CALL = 5.0
ALL_NAMES_PARTITION = 0.002


def filter_is_cheaper(keys: int, total: int) -> bool:
    """Whether to ask for ``keys`` values of ``total`` partitions by filter, or for all names.

    The metastore turns a filter into SQL that compares every partition with every key; names are
    short and are matched here. So few keys of many partitions are asked for by a filter.

    >>> filter_is_cheaper(10, 10_000), filter_is_cheaper(400, 10_000), filter_is_cheaper(10, 300)
    (True, False, False)
    """
    by_filter = FILTER_CALL + (FILTER_PARTITION + FILTER_COMPARISON * keys) * total
    return by_filter < ALL_NAMES_CALL + ALL_NAMES_PARTITION * total
