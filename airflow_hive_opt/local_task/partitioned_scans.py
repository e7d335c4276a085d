"""Scans of tables whose partitions are in a metastore: the keys become a list of partitions."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_hive_opt.documents.descriptor import Decision, Target
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import FOR_NOTHING, is_for_nothing
from airflow_hive_opt.local_task.partition_search import PartitionSearch
from airflow_hive_opt.local_task.redundant_joins import redundant_joins
from airflow_hive_opt.local_task.scan_kinds import Entry, is_prunable, sources_of
from airflow_hive_opt.local_task.selection import (
    Selection,
    is_too_long,
    target_of,
    union_of,
)
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.scan_way import is_worth_pruning
from airflow_hive_opt.restriction.restrict import way_of
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin


class PartitionedScan:
    """A :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan` by partitions."""

    def __init__(self, context: LocalTaskContext, decision: ScanDecision) -> None:
        self._context = context
        self._decision = decision
        self._search = PartitionSearch(context)

    def key_sources(self) -> Sequence[KeySource]:
        """See :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan`."""
        return sources_of(self._context, self._decision)

    def entry(self) -> Entry:
        """The scan's partitions, or why it reads all of them."""
        scan, found = self._decision.scan, self._target()
        if isinstance(found, Reason):
            skipped = self._context.skipped_keys(self._decision, found, found in FOR_NOTHING)
            return Entry(Decision(scan, found, found.sentence, skipped))
        target, redundant = found
        reason = Reason.PRUNED
        for_nothing = not redundant and is_for_nothing(target.kept, target.total)
        skipped = self._context.skipped_keys(self._decision, reason, for_nothing)
        decision = Decision(scan, reason, reason.sentence, skipped)
        return Entry(decision, target, redundant=redundant)

    def _target(self) -> tuple[Target, tuple[RedundantJoin, ...]] | Reason:
        decision, context = self._decision, self._context
        if not decision.pruned or decision.relation is None:
            return decision.reason
        if not is_prunable(decision):
            return Reason.TYPE_NOT_COMPARABLE
        if context.skips_keys(decision):
            return Reason.NOT_ASKED_AGAIN
        selections: list[Selection] = []
        for one in decision.separate():
            found = self._select(one)
            if isinstance(found, Reason):
                return found
            selections.append(found)
        partitions = union_of(selections)
        total = context.total(decision.table, beyond=2 * len(partitions))
        if len(partitions) >= total:
            return Reason.ALL_PARTITIONS_MATCH
        if not is_worth_pruning(len(partitions), total):
            return Reason.MOST_PARTITIONS_MATCH
        target = target_of(decision, decision.relation, selections, total, context.hand_over)
        if is_too_long(target):
            return Reason.LIST_TOO_LARGE
        tuples = selections[0].tuples
        if len(selections) > 1 or not any(keys.unique for keys, _ in tuples):
            return target, ()
        way = way_of(target, context.is_on_glue)
        return target, tuple(redundant_joins(decision, target, tuples, way))

    def _select(self, decision: ScanDecision) -> Selection | Reason:
        """The partitions for one alternative, or why the scan must read all partitions."""
        context = self._context
        if context.metastore_failed:
            return Reason.KEY_SOURCE_FAILED
        selection = Selection(decision, context.hand_over)
        failure = Reason.KEY_SOURCE_FAILED
        try:
            for source in decision.sources:
                keys = context.keys.of(source)
                if isinstance(keys, Reason):
                    failure = keys
                else:
                    selection.add(keys)
            if context.metastore_failed:
                return failure
            total = context.total(decision.table)  # last: the background thread may still count
            if total < 2:
                return Reason.TOO_FEW_PARTITIONS
            if not self._search.find(selection, total):
                return selection.failure or failure
        except context.engine.failures as error:
            return context.failed(f"{decision.scan.name} can't be pruned", error)
        return selection
