"""What partition pruning decided for each scan."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_hive_opt.pruning.query import ColumnRef, TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.text_enum import StrEnum


class Path(StrEnum):
    """How a scan's partitions are found.

    FAST: keys are compared with partition values. SKELETON: Spark evaluates the conditions on the
    partitions' names. STATIC: no table is read, partition names and literals decide. PREDICATE:
    keys go to the scan as a condition on a data column. NONE: the scan is read whole.
    """

    FAST = "fast"
    SKELETON = "skeleton"
    STATIC = "static"
    PREDICATE = "predicate"
    NONE = "none"


@dataclass(frozen=True)
class Layer:
    """A relation whose columns are made of partition columns: the scan, or a query around it.

    ``columns`` are name and SQL, said with the alias of the layer below; the scan has none.
    """

    alias: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PartitionCondition:
    """A condition of the statement that reads nothing but the columns of the last of ``layers``."""

    sql: str
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class KeySource:
    """A query that gives the distinct keys of one small side.

    ``columns`` says what its columns are, relation by relation. ``conditions`` compare them with
    the last of ``layers``; where all are equalities of bare columns of like types,
    ``partition_columns`` are the other sides, in the order of ``columns``, else it is empty.
    ``skeletons`` are views of partition names that ``sql`` reads in place of tables. ``hashable``
    says that an equality is among the conditions. ``name`` is what to call the source to people.
    Where ``sql`` reads one table as it is, ``reference`` is its place in the statement and
    ``asked`` are the statement's own conditions on it that ``sql`` has, as they stand there.
    """

    aliases: tuple[str, ...]
    name: str
    sql: str
    columns: tuple[ColumnRef, ...]
    conditions: tuple[str, ...]
    layers: tuple[Layer, ...]
    hashable: bool
    partition_columns: tuple[str, ...] = ()
    skeletons: tuple[tuple[str, Table], ...] = ()
    reference: Span | None = field(default=None, compare=False)
    asked: tuple[str, ...] = field(default=(), compare=False)

    @property
    def counting_sql(self) -> str:
        """The keys as ``c0``, ``c1``, ... and, as ``__rows``, the number of rows that have them.

        The source is small: one task counts without a shuffle, in half the time.
        """
        names = ", ".join(f"c{number}" for number, _ in enumerate(self.columns))
        rows = self.sql.replace("SELECT DISTINCT ", "SELECT /*+ COALESCE(1) */ ", 1)
        return (
            f"SELECT {names}, count(*) AS __rows FROM ({rows}) AS __keys ({names}) GROUP BY {names}"
        )

    @property
    def from_names(self) -> bool:
        """Whether partition names alone give the keys."""
        return len(self.skeletons) == len(self.aliases)


@dataclass(frozen=True)
class ScanDecision:
    """One scan of a partitioned table: pruned by ``sources`` and ``conditions``, or left whole.

    ``relation`` is ``None`` for a scan in a part of the statement that passes through.
    ``columns`` are the partition columns that are restricted.
    """

    alias: str
    table: Table
    reason: Reason
    relation: TableRelation | None = None
    sources: tuple[KeySource, ...] = ()
    conditions: tuple[PartitionCondition, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def pruned(self) -> bool:
        """Whether partitions will be chosen."""
        return self.reason is Reason.PRUNED

    @property
    def path(self) -> Path:
        """How partitions will be found, as far as it is known before keys are read."""
        if not self.pruned:
            return Path.NONE
        if all(source.from_names for source in self.sources):
            return Path.STATIC
        fast = all(source.partition_columns for source in self.sources)
        return Path.FAST if fast else Path.SKELETON


@dataclass(frozen=True)
class KeyPredicate:
    """A data column of a scan, and the keys of a small side that its rows must have."""

    relation: TableRelation
    column: str
    type: str
    source: KeySource
