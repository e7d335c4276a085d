"""Scans of tables whose own metadata finds the files, such as Iceberg's: keys become conditions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import Decision, PlannedFiles, RowFilter
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.local_task.changes import merged_into
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import FOR_NOTHING, files_for_nothing
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.scan_kinds import Entry, sources_of
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.keys.key_ends import Range, key_ends
from airflow_hive_opt.spark.local_task.fixed_snapshots import is_target
from airflow_hive_opt.spark.local_task.indexed_files import Indexed, KeyIndexLookup
from airflow_hive_opt.spark.local_task.value_lists import ValueFilter, value_filters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
FEW_VALUES = 100
"""A condition with so few values costs nothing, even if it leaves all files."""


class LakeScan:
    """A :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan` by its files.

    ``counted_in_plan`` says that files need not be counted before the statement if its plan tells
    them and the condition has few values.
    """

    def __init__(
        self,
        context: LocalTaskContext,
        session: SparkSession,
        decision: ScanDecision,
        plan: Plan,
        lookup: KeyIndexLookup | None = None,
        counted_in_plan: bool = False,
    ) -> None:
        self._context = context
        self._session = session
        self._decision = decision
        self._plan = plan
        self._lookup = lookup
        self._counted_in_plan = counted_in_plan

    def key_sources(self) -> Sequence[KeySource]:
        """See :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan`."""
        return sources_of(self._context, self._decision)

    def entry(self) -> Entry:
        """The conditions on the scan and the files that they leave, or why it has none."""
        found = self._restriction()
        reason = found if isinstance(found, Reason) else Reason.RESTRICTED
        skipped = self._context.skipped_keys(self._decision, reason, reason in FOR_NOTHING)
        decision = Decision(self._decision.scan, reason, reason.sentence, skipped)
        if isinstance(found, Reason):
            return Entry(decision)
        filters, indexed, files = found
        return Entry(
            decision,
            filters=filters,
            files=files,
            index_filters=indexed.filters,
            index_uses=indexed.uses,
            held_scans=indexed.held,
        )

    def _restriction(self) -> tuple[tuple[RowFilter, ...], Indexed, PlannedFiles] | Reason:
        decision, context = self._decision, self._context
        format_ = named(self._session, decision.table.provider)
        if context.skips_keys(decision):
            return Reason.NOT_ASKED_AGAIN
        merged = merged_into(self._plan, decision)
        try:
            filters = value_filters(
                decision,
                self._keys_of,
                self._ends_of,
                partial(format_.most_values, self._session),
                merged,
                self._listed(),
            )
        except context.engine.failures as error:
            return context.failed(f"{decision.scan.name} can't be restricted", error)
        if isinstance(filters, Reason):
            return filters
        indexed = self._indexed(filters)
        own = tuple(each.row_filter for each in indexed.simplified(filters))
        relation = decision.relation
        assert relation is not None, "a pruned decision"
        names = {visible: column.name for visible, column in relation.table.visible_pruning_columns}
        conditions = [(names[each.column], each) for each in (*own, *indexed.conditions)]
        expression = format_.expression(decision.table, conditions)
        alone = None
        if indexed.conditions:
            alone = format_.expression(decision.table, conditions[: len(own)])
        if indexed.files is not None:
            told = replace(indexed.files, expression=expression, without_index=alone)
            return own, indexed, told
        planned = PlannedFiles(decision.scan, expression, without_index=alone)
        if self._counted_in_plan and _lists_few_values(decision, conditions):
            return own, indexed, replace(planned, keys_digest=context.digest(decision))
        planned = counted(self._session, planned)
        return files_for_nothing(planned) or (own, indexed, planned)

    def _listed(self) -> tuple[str, ...]:
        """The columns whose keys must be a list: UPDATE and DELETE keep to it."""
        relation, row_level = self._decision.relation, self._plan.row_level
        if self._lookup is None or relation is None or not is_target(self._plan, relation):
            return ()
        if row_level is None or row_level.source is not None:
            return ()
        return self._decision.table.indexed

    def _indexed(self, filters: Sequence[ValueFilter]) -> Indexed:
        """What the key indexes give; after an error, nothing."""
        if self._lookup is None:
            return Indexed()
        try:
            return self._lookup.indexed(self._decision, filters)
        except Exception as error:  # noqa: BLE001 - an index costs speed, never the run
            log.warning(
                "the key indexes of %s are not used: %s", self._decision.table.name, in_words(error)
            )
            return Indexed()

    def _keys_of(self, source: KeySource) -> Keys | Reason:
        """The source's keys, unless partitions added before the map join may bring more keys."""
        if self._context.hand_over and source.skeletons:
            return Reason.NOT_HANDED_OVER
        return self._context.keys.of(source)

    def _ends_of(self, source: KeySource) -> list[Range | None]:
        if source.skeletons:
            return []
        return key_ends(self._session, source, self._context.parameters)


def _lists_few_values(decision: ScanDecision, conditions: Sequence[tuple[str, RowFilter]]) -> bool:
    """Whether the conditions list few values of partition columns."""
    return all(
        name in decision.table.partitioned_by
        and not found.is_range
        and len(found.values) <= FEW_VALUES
        for name, found in conditions
    )
