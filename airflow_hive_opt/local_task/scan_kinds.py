"""The kinds of scans that keys restrict, and what one of them adds to the descriptor.

Each kind is a class in a module of its own: ``partitioned_scans`` has scans of partitions in a
metastore. On Spark, ``lake_scans`` has scans of files that a table's own metadata lists, and
``data_columns`` those of rows that Spark's readers skip by a column's values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from airflow_hive_opt.documents.descriptor import Decision, PlannedFiles, RowFilter, Target
from airflow_hive_opt.documents.indexed_scans import HeldScan, IndexUse
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.metastores.partitions import comparable
from airflow_hive_opt.pruning.decisions import KeyPredicate, KeySource, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin


@dataclass(frozen=True)
class Entry:
    """What one scan adds to the descriptor; all parts name the same scan.

    ``redundant`` are the joins with small tables that the scan's partitions decide. The parts from
    key indexes are those of the descriptor: conditions, what was done, and scans to hold.
    """

    decision: Decision | None = None
    target: Target | None = None
    filters: tuple[RowFilter, ...] = ()
    files: PlannedFiles | None = None
    redundant: tuple[RedundantJoin, ...] = ()
    index_filters: tuple[RowFilter, ...] = ()
    index_uses: tuple[IndexUse, ...] = ()
    held_scans: tuple[HeldScan, ...] = ()


class RestrictedScan(Protocol):
    """One scan that keys may restrict."""

    def key_sources(self) -> Sequence[KeySource]:
        """The sources whose keys are worth reading. The keys of all scans are read together."""

    def entry(self) -> Entry:
        """The scan's entry; after an error, the scan is only not pruned."""


class OtherScans(Protocol):
    """Makes the scans whose kind depends on the engine."""

    def lake_scan(
        self, context: LocalTaskContext, decision: ScanDecision, plan: Plan
    ) -> RestrictedScan:
        """A scan of a table that keeps its own list of files."""

    def data_column(
        self, context: LocalTaskContext, predicate: KeyPredicate, target: Target | None
    ) -> RestrictedScan:
        """A scan whose rows a data column's values restrict; ``target`` is its partition list."""


def is_prunable(decision: ScanDecision) -> bool:
    """Whether the planner prunes the scan, and its table's partition values can be compared."""
    columns = decision.table.partition_columns
    return decision.pruned and all(comparable(column.type) for column in columns)


def sources_of(context: LocalTaskContext, decision: ScanDecision) -> Sequence[KeySource]:
    """The key sources of a prunable scan, unless an earlier run says that they are of no use."""
    if not is_prunable(decision) or context.skips_keys(decision):
        return ()
    return decision.sources
