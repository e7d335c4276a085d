"""Scans of tables whose own metadata finds the files, such as Iceberg's: keys become conditions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import Decision, PlannedFiles, RowFilter
from airflow_hive_opt.local_task.changes import merged_into
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import FOR_NOTHING, is_for_nothing
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.scan_kinds import Entry, sources_of
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.catalog.lakes.formats import named
from airflow_hive_opt.spark.keys.key_ends import Range, key_ends
from airflow_hive_opt.spark.local_task.value_lists import value_filters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW_FILES = 100
"""With so few files a condition costs nothing, and other writers conflict less with MERGE."""


class LakeScan:
    """A :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan` by its files."""

    def __init__(
        self, context: LocalTaskContext, session: SparkSession, decision: ScanDecision, plan: Plan
    ) -> None:
        self._context = context
        self._session = session
        self._decision = decision
        self._plan = plan

    def key_sources(self) -> Sequence[KeySource]:
        """See :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan`."""
        return sources_of(self._context, self._decision)

    def entry(self) -> Entry:
        """The conditions on the scan and the files that they leave, or why it has none."""
        found = self._restriction()
        filters, files = ((), None) if isinstance(found, Reason) else found
        reason = found if isinstance(found, Reason) else Reason.RESTRICTED
        skipped = self._context.skipped_keys(self._decision, reason, reason in FOR_NOTHING)
        decision = Decision(self._decision.scan, reason, reason.sentence, skipped)
        return Entry(decision, filters=filters, files=files)

    def _restriction(self) -> tuple[tuple[RowFilter, ...], PlannedFiles] | Reason:
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
            )
        except context.engine.failures as error:
            return context.failed(f"{decision.scan.name} can't be restricted", error)
        if isinstance(filters, Reason):
            return filters
        relation = decision.relation
        assert relation is not None, "a pruned decision"
        names = {visible: column.name for visible, column in relation.table.visible_pruning_columns}
        conditions = [(names[each.column], each) for each in filters]
        expression = format_.expression(decision.table, conditions)
        planned = counted(self._session, PlannedFiles(decision.scan, expression))
        return _why_for_nothing(planned) or (filters, planned)

    def _keys_of(self, source: KeySource) -> Keys | Reason:
        """The source's keys, unless partitions added before the map join may bring more keys."""
        if self._context.hand_over and source.skeletons:
            return Reason.NOT_HANDED_OVER
        return self._context.keys.of(source)

    def _ends_of(self, source: KeySource) -> list[Range | None]:
        if source.skeletons:
            return []
        return key_ends(self._session, source, self._context.parameters)


def _why_for_nothing(found: PlannedFiles) -> Reason | None:
    """Why the condition would only cost time: it leaves nearly all of many files."""
    if found.files is None or found.total_files is None or found.files <= FEW_FILES:
        return None
    if found.files >= found.total_files:
        return Reason.ALL_FILES_MATCH
    return Reason.MOST_FILES_MATCH if is_for_nothing(found.files, found.total_files) else None
