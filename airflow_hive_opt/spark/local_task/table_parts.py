"""Which parts of large tables a statement reads, and whether to read a part's keys pays.

A key query of a part of a table runs only if the part costs clearly less than what it may save.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Optional

from airflow_hive_opt.documents.descriptor import Descriptor, PlannedFiles, RowFilter
from airflow_hive_opt.documents.indexed_scans import HeldScan, HeldTable, reading_cost
from airflow_hive_opt.local_task.earlier_runs import is_for_nothing
from airflow_hive_opt.pruning.decisions import Alternative, KeySource, ScanDecision
from airflow_hive_opt.pruning.hops import with_sources
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.query import NarrowedTable, TableRelation
from airflow_hive_opt.restriction.row_changes import values_condition
from airflow_hive_opt.spark.catalog.lakes.files import all_files, counted
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.local_task.fixed_snapshots import FixedSnapshots
from airflow_hive_opt.spark.local_task.snapshots import relations
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import is_indexable
from airflow_hive_opt.statement.scan_ref import ScanRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_OF_THE_SCAN = 0.5  # the cost of the key query's large tables, as a share of the scan's


@dataclass(frozen=True)
class Size:
    """Numbers of data files and of their bytes."""

    files: int
    bytes: int

    @property
    def cost(self) -> int:
        """The cost of reading the files, in bytes."""
        return reading_cost(self.files, self.bytes)


@dataclass(frozen=True)
class Part:
    """The part of a table that a scan reads, and the scans that hold the table to a snapshot."""

    table: NarrowedTable
    size: Size
    held: tuple[HeldScan, ...]
    table_id: str

    @property
    def held_table(self) -> HeldTable:
        """The table and its snapshot."""
        return HeldTable(self.table.scan.table, self.held[0].snapshot, self.table_id)


class TableParts:
    """The parts that the scans of a plan read, by the conditions in a descriptor.

    The methods raise Spark's errors.
    """

    def __init__(self, session: SparkSession, plan: Plan, snapshots: FixedSnapshots) -> None:
        self._session = session
        self._plan = plan
        self._snapshots = snapshots
        self._by_hops: dict[ScanRef, Size] = {}

    def narrowed(self, descriptor: Descriptor) -> dict[ScanRef, Part]:
        """The scans that read clearly less than their table, which must be one that can be held."""
        found: dict[ScanRef, Part] = {}
        for relation in relations(self._plan):
            filters = filters_of(descriptor, relation.scan)
            if filters and is_indexable(relation.table.provider) and relation.scan not in found:
                part = self._part(descriptor, relation, filters)
                if part is not None:
                    found[relation.scan] = part
        return found

    def size(self, descriptor: Descriptor, scan: ScanRef) -> Optional[Size]:
        """What the scan reads by its conditions so far; ``None`` if it is not known."""
        if scan in self._by_hops:
            return self._by_hops[scan]
        for found in descriptor.planned_files:
            if found.scan == scan:
                return _size_of(found)
        whole = all_files(self._session, scan.table)
        return None if whole is None else Size(*whole)

    def size_with(
        self, descriptor: Descriptor, relation: TableRelation, added: Sequence[RowFilter]
    ) -> Optional[Size]:
        """What the scan would read with more conditions."""
        table = relation.table.scanned
        names = {visible: column.name for visible, column in relation.table.visible_pruning_columns}
        filters = [*filters_of(descriptor, relation.scan), *added]
        conditions = [(names[each.column], each) for each in filters]
        expression = named(self._session, table.provider).expression(table, conditions)
        return _size_of(counted(self._session, PlannedFiles(relation.scan, expression)))

    def narrow(self, scan: ScanRef, size: Size) -> None:
        """Keeps what a scan reads after a hop."""
        self._by_hops[scan] = size

    def _part(
        self, descriptor: Descriptor, relation: TableRelation, filters: Sequence[RowFilter]
    ) -> Optional[Part]:
        size = self.size(descriptor, relation.scan)
        whole = all_files(self._session, relation.table.name)
        if size is None or whole is None or is_for_nothing(size.cost, Size(*whole).cost):
            return None
        fixed = self._snapshots.of(relation)
        if isinstance(fixed, str) or not fixed.held:
            return None
        alias = quote(relation.alias)
        conditions = (values_condition(f"{alias}.{quote(f.column)}", f) for f in filters)
        version = f"VERSION AS OF {int(fixed.snapshot)}"
        text = " AND ".join(f"({condition})" for condition in conditions)
        return Part(NarrowedTable(relation.scan, text, version), size, fixed.held, fixed.table_id)


def filters_of(descriptor: Descriptor, scan: ScanRef) -> list[RowFilter]:
    """All conditions on a scan."""
    found = (*descriptor.row_filters, *descriptor.index_filters)
    return [each for each in found if each.scan == scan and not each.guards_only]


def tables_of(decision: ScanDecision) -> list[NarrowedTable]:
    """The narrowed tables that the decision's sources read, each once."""
    return list(dict.fromkeys(each for source in decision.sources for each in source.narrowed))


def worth_asking(
    decision: ScanDecision, size: Size, parts: Mapping[ScanRef, Part]
) -> Optional[ScanDecision]:
    """The decision with the sources that cost clearly less than the scan; ``None`` without any."""
    alternatives = tuple(
        with_sources(each, tuple(_cheap(each, size, parts))) for each in decision.alternatives
    )
    if not all(each.sources for each in alternatives):
        return None
    return replace(decision, alternatives=alternatives)


def _cheap(
    alternative: Alternative, size: Size, parts: Mapping[ScanRef, Part]
) -> Iterator[KeySource]:
    def cost(source: KeySource) -> int:
        return sum(parts[each.scan].size.cost for each in source.narrowed)

    left = _MOST_OF_THE_SCAN * size.cost
    for source in sorted(alternative.sources, key=cost):
        left -= cost(source)
        if left >= 0:
            yield source


def _size_of(found: PlannedFiles) -> Optional[Size]:
    if found.files is None or found.bytes is None:
        return None
    return Size(found.files, found.bytes)
