"""The plan of a statement: its operator trees, and the decisions for each scan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from airflow_hive_opt.pruning.operators import Operator
from airflow_hive_opt.pruning.query import ColumnRef, NarrowedTable, TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.row_level import RowLevel
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.text_enum import StrEnum


class Path(StrEnum):
    """The method that finds the partitions that a scan reads.

    - FAST: the keys are compared with partition values.
    - SKELETON: Spark evaluates the conditions on the partitions' names.
    - STATIC: partition names and literals decide; no table is read.
    - PREDICATE: the keys become a condition on data columns of the scan.
    - NONE: the scan reads the whole table.
    """

    FAST = "fast"
    SKELETON = "skeleton"
    STATIC = "static"
    PREDICATE = "predicate"
    NONE = "none"


@dataclass(frozen=True)
class Layer:
    """A relation whose columns derive from partition columns: the scan, or a query around it.

    ``columns`` has pairs of a name and its SQL expression over the layer below. It is empty for
    the scan itself.
    """

    alias: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PartitionCondition:
    """A condition on partition columns.

    ``layers`` lead from the scan (first) to the query that has the condition (last). The condition
    reads only columns of the last layer.
    """

    sql: str
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class KeySource:
    """A query that returns the distinct keys of one or more joined small tables.

    A key too many only lets a scan read more partitions: a partition is read if any key fulfils
    ``conditions`` with it. What NOT IN and NOT EXISTS exclude is inside ``sql``.

    - ``aliases`` are the relations that ``sql`` reads, and ``name`` is their name in logs.
    - ``columns`` are the output columns of ``sql``, as columns of these relations.
    - ``conditions`` compare them with the columns of the last of ``layers``.
    - ``partition_columns`` are the partition columns that equal ``columns``, in the same order. It
      is empty unless all conditions are equalities of bare columns of comparable types.
    - ``skeletons`` has pairs of a view name and a table. ``sql`` reads these views of partition
      names instead of the tables.
    - ``hashable`` says that at least one condition is an equality.
    - ``scan`` is the scan of the small table in the statement if ``sql`` reads exactly one table,
      unchanged; otherwise ``None``.
    - ``asked`` are the statement's conditions that ``sql`` contains, in their original text.
      ``asked_sql`` has them with every column qualified.
    - ``metadata_sql`` asks the table's own list of partitions instead of its rows. It may also
      return keys of deleted rows. It is empty if the list does not have the keys, or if a key too
      many would matter.
    - ``narrowed`` are the large tables of which ``sql`` reads the part that the statement reads.
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
    scan: ScanRef | None = field(default=None, compare=False)
    asked: tuple[str, ...] = field(default=(), compare=False)
    asked_sql: tuple[str, ...] = field(default=(), compare=False)
    metadata_sql: str = ""
    narrowed: tuple[NarrowedTable, ...] = ()

    @property
    def counting_sql(self) -> str:
        """SQL for the keys as ``c0``, ``c1``, ..., with their numbers of rows as ``__rows``.

        A small source is counted by a single task without a shuffle, in half the time.
        """
        names = ", ".join(f"c{number}" for number, _ in enumerate(self.columns))
        hint = "" if self.narrowed else "/*+ COALESCE(1) */ "
        rows = self.sql.replace("SELECT DISTINCT ", f"SELECT {hint}", 1)
        return (
            f"SELECT {names}, count(*) AS __rows FROM ({rows}) AS __keys ({names}) GROUP BY {names}"
        )

    @property
    def unversioned_sql(self) -> str:
        """``sql`` without the snapshots of narrowed tables."""
        sql = self.sql
        for each in self.narrowed:
            sql = sql.replace(f" {each.version} ", " ")
        return sql

    @property
    def from_names(self) -> bool:
        """Whether the keys come from partition names alone."""
        return len(self.skeletons) == len(self.aliases)


@dataclass(frozen=True)
class Alternative:
    """Key sources and conditions on ``columns``; a partition must fulfil all of them."""

    sources: tuple[KeySource, ...]
    conditions: tuple[PartitionCondition, ...]
    columns: frozenset[str]


@dataclass(frozen=True)
class ScanDecision:
    """The decision for one scan of a partitioned table.

    If ``reason`` is ``PRUNED``, the scan reads the partitions that fulfil at least one of
    ``alternatives``; otherwise it reads the whole table. There are several alternatives if the scan
    is in a CTE that the statement reads several times, with other conditions each time.
    ``relation`` is ``None`` for a scan in a part of the statement that passes through.
    """

    scan: ScanRef
    table: Table
    reason: Reason
    relation: TableRelation | None = None
    alternatives: tuple[Alternative, ...] = ()

    @property
    def sources(self) -> tuple[KeySource, ...]:
        """The key sources of all alternatives, each once."""
        found = (source for each in self.alternatives for source in each.sources)
        return tuple(dict.fromkeys(found))

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns that are restricted, in the order of the table."""
        named = frozenset().union(*(each.columns for each in self.alternatives))
        return tuple(c.name for c in self.table.pruning_columns if c.name in named)

    def separate(self) -> Iterator[ScanDecision]:
        """One decision for each alternative."""
        return (replace(self, alternatives=(each,)) for each in self.alternatives)

    @property
    def pruned(self) -> bool:
        """Whether the scan is pruned."""
        return self.reason is Reason.PRUNED

    @property
    def path(self) -> Path:
        """The method that will find the partitions, as known before the keys are read."""
        if not self.pruned:
            return Path.NONE
        if self.table.provider:
            return Path.PREDICATE
        if all(source.from_names for source in self.sources):
            return Path.STATIC
        fast = all(source.partition_columns for source in self.sources)
        return Path.FAST if fast else Path.SKELETON


@dataclass(frozen=True)
class KeyPredicate:
    """A data column of a scan, and the small table's keys that its rows must have."""

    relation: TableRelation
    column: str
    type: str
    source: KeySource


@dataclass(frozen=True)
class Plan:
    """The plan for the statement ``sql``. Each rule returns a new one.

    ``kind`` is ``None`` for a statement that passes through to Spark, and ``passed_through`` says
    why. ``trees`` has the main query's operator trees first, one for each branch of a set
    operation, then those of CTEs and of subqueries in expressions. ``row_level`` is set for MERGE,
    UPDATE and DELETE.
    """

    sql: str
    kind: str | None
    target: str | None
    trees: tuple[Operator, ...]
    decisions: tuple[ScanDecision, ...]
    predicates: tuple[KeyPredicate, ...] = ()
    warnings: tuple[str, ...] = ()
    passed_through: str | None = None
    row_level: RowLevel | None = None
