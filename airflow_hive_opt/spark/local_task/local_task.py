"""The local task: keys, metastore, descriptor (HIVE-5119, execution, the local work)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    Question,
    RowFilter,
    Target,
    now,
    query_digest,
)
from airflow_hive_opt.documents.required_keys import FoundKeys
from airflow_hive_opt.metastores.metastore import MetastoreError, PartitionCatalog
from airflow_hive_opt.metastores.partitions import (
    Partition,
    comparable,
)
from airflow_hive_opt.pruning.decisions import (
    KeyPredicate,
    KeySource,
    ScanDecision,
)
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.scan_way import is_worth_pruning
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.keys.key_set import KeyBounds, Keys
from airflow_hive_opt.spark.local_task.changes import changes_of
from airflow_hive_opt.spark.local_task.data_column_keys import promising_row_groups, row_filter
from airflow_hive_opt.spark.local_task.earlier_runs import (
    FOR_NOTHING,
    EarlierRuns,
    digest_of,
    is_for_nothing,
)
from airflow_hive_opt.spark.local_task.key_sets import FAILURES, KeySets, failed
from airflow_hive_opt.spark.local_task.lake_scans import LakeScan, lake_scan, unrestricted
from airflow_hive_opt.spark.local_task.partition_search import PartitionSearch
from airflow_hive_opt.spark.local_task.redundant_joins import redundant_joins
from airflow_hive_opt.spark.local_task.required_keys import collected_keys
from airflow_hive_opt.spark.local_task.selection import (
    Selection,
    is_too_long,
    target_of,
    union_of,
)
from airflow_hive_opt.spark.restriction.restrict import way_of
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.statement.scan_ref import ScanRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def run_local_task(
    session: SparkSession,
    catalog: SessionCatalog,
    metastore: PartitionCatalog,
    plan: Plan,
    bounds: KeyBounds,
    parameters: Mapping[str, object] | None,
    earlier: EarlierRuns,
    hand_over: bool,
) -> tuple[Descriptor, tuple[RedundantJoin, ...], FoundKeys | None]:
    """Collects the keys of every prunable scan and finds the partitions that match them.

    ``metastore`` looks up partitions; ``catalog`` only gives the location of files. ``hand_over``
    says that other applications read the results. Returns the descriptor and the joins that the
    keys decide completely. These joins may be left out only as long as the small tables do not
    change. Then the keys for sensors, if ``hand_over`` asks for them and all of them were read.
    """
    task = LocalTask(session, catalog, metastore, bounds, parameters or {}, earlier, hand_over)
    task.collect_keys(plan.decisions)
    targets = []
    decisions = []
    row_filters: list[RowFilter] = []
    planned_files: list[PlannedFiles] = []
    for decision in plan.decisions:
        if decision.pruned and decision.table.provider:
            found = task.lake_scan(decision, plan)
            decisions.append(found.decision)
            row_filters += found.filters
            planned_files += [found.files] if found.files else []
            continue
        outcome = task.outcome(decision)
        if isinstance(outcome, Target):
            targets.append(outcome)
        reason = Reason.PRUNED if isinstance(outcome, Target) else outcome
        question = task.question(decision, outcome)
        decisions.append(Decision(decision.scan, reason, reason.sentence, question))
    for predicate in plan.predicates:
        row_filter = task.row_filter(predicate, targets)
        if isinstance(row_filter, RowFilter):
            row_filters.append(row_filter)
        else:
            column = f"{predicate.relation.scan.name}.{predicate.column}"
            log.info("the keys do not go to %s, %s: %s", column, row_filter, row_filter.sentence)
    descriptor = Descriptor(
        query_digest(plan.sql, parameters),
        now(),
        tuple(targets),
        tuple(decisions),
        tuple(row_filters),
        tuple(planned_files),
        changes=changes_of(plan),
    )
    written = (plan.target or "").rpartition(".")[2]  # Spark may refuse to write a table it reads
    redundant = tuple(each for each in task.answered if each.table.short_name != written)
    return descriptor, redundant, task.keys_for_sensors(plan) if hand_over else None


def _is_prunable(decision: ScanDecision) -> bool:
    columns = decision.table.partition_columns
    return decision.pruned and all(comparable(column.type) for column in columns)


class LocalTask:
    """The work for one statement; runs no key query twice and lists no table's names twice."""

    def __init__(
        self,
        session: SparkSession,
        catalog: SessionCatalog,
        metastore: PartitionCatalog,
        bounds: KeyBounds,
        parameters: Mapping[str, object],
        earlier: EarlierRuns,
        hand_over: bool,
    ) -> None:
        self._session = session
        self._catalog = catalog
        self._metastore = metastore
        self._parameters = parameters
        self._earlier = earlier
        self._hand_over = hand_over
        self._metastore_failed = False  # whether a metastore call has failed: no further calls then
        self._names: dict[str, list[Partition]] = {}
        self._totals: dict[str, int] = {}
        self.answered: list[RedundantJoin] = []
        self._with_fewer_joins: set[ScanRef] = set()
        self._search = PartitionSearch(
            session, catalog, metastore, self._partition_names, parameters
        )
        self._keys = KeySets(session, bounds, parameters, self._partition_names, from_metadata=True)

    def collect_keys(self, decisions: Sequence[ScanDecision]) -> None:
        """Runs the key queries of all scans that may be pruned at the same time."""
        chosen = (each for each in decisions if _is_prunable(each) and not self._is_answered(each))
        self._keys.collect_together([source for each in chosen for source in each.sources])

    def outcome(self, decision: ScanDecision) -> Target | Reason:
        """The scan's target, or why it reads all partitions; an error only costs its pruning."""
        if not decision.pruned or decision.relation is None:
            return decision.reason
        if not _is_prunable(decision):
            return Reason.TYPE_NOT_COMPARABLE
        if self._is_answered(decision):
            return Reason.NOT_ASKED_AGAIN
        selections: list[Selection] = []
        for one in decision.separate():
            found = self._select(one)
            if isinstance(found, Reason):
                return found
            selections.append(found)
        partitions = union_of(selections)
        total = self._total(decision.table, beyond=2 * len(partitions))
        if len(partitions) >= total:
            return Reason.ALL_PARTITIONS_MATCH
        if not is_worth_pruning(len(partitions), total):
            return Reason.MOST_PARTITIONS_MATCH
        target = target_of(decision, decision.relation, selections, total, self._hand_over)
        if is_too_long(target):
            return Reason.LIST_TOO_LARGE
        if len(selections) == 1:
            way = way_of(target, self._catalog.is_on_glue)
            fewer = list(redundant_joins(decision, target, selections[0].tuples, way))
            self.answered += fewer
            self._with_fewer_joins |= {decision.scan} if fewer else set()
        return target

    def keys_for_sensors(self, plan: Plan) -> FoundKeys | None:
        """The keys of all scans, as far as they have been read; an error costs only a sensor."""
        try:
            return collected_keys(plan, self._keys)
        except FAILURES as error:
            log.info("a sensor will have to read the keys again: %s", in_words(error))
            return None

    def lake_scan(self, decision: ScanDecision, plan: Plan) -> LakeScan:
        """What :func:`lake_scan` finds out, or that an earlier run has settled it."""
        if self._is_answered(decision):
            found = unrestricted(decision, Reason.NOT_ASKED_AGAIN)
        else:
            found = lake_scan(
                self._session, decision, plan, self._keys_of_lake_scan, self._parameters
            )
        question = self.question(decision, Reason(found.decision.reason))
        return replace(found, decision=replace(found.decision, question=question))

    def _keys_of_lake_scan(self, source: KeySource) -> Keys | Reason:
        """The source's keys, unless partitions that are added before the map join may be more."""
        if self._hand_over and source.skeletons:
            return Reason.NOT_HANDED_OVER
        return self._keys.of(source)

    def question(self, decision: ScanDecision, outcome: Target | Reason) -> Question | None:
        """What the next run need not ask; ``None`` if the answer saves time."""
        if isinstance(outcome, Target):
            saves = decision.scan in self._with_fewer_joins
            asked = not saves and is_for_nothing(outcome.kept, outcome.total)
        else:
            asked = outcome in FOR_NOTHING
        if not asked and outcome is not Reason.NOT_ASKED_AGAIN:
            return None
        digest = digest_of(decision, self._parameters)
        return Question(digest, 0 if asked else self._earlier.unasked[digest] + 1)

    def _is_answered(self, decision: ScanDecision) -> bool:
        unasked = self._earlier.unasked
        return bool(unasked) and self._earlier.is_answered(digest_of(decision, self._parameters))

    def _select(self, decision: ScanDecision) -> Selection | Reason:
        """The partitions for one alternative, or why the scan must read all partitions."""
        if self._metastore_failed:
            return Reason.KEY_SOURCE_FAILED
        selection = Selection(decision, self._hand_over)
        failure = Reason.KEY_SOURCE_FAILED
        try:
            for source in decision.sources:
                keys = self._keys.of(source)
                if isinstance(keys, Keys):
                    selection.add(keys)
                else:
                    failure = keys
            if self._metastore_failed:
                return failure
            total = self._total(decision.table)  # last: the background thread may still count
            if total < 2:
                return Reason.TOO_FEW_PARTITIONS
            if not self._search.find(selection, total):
                return selection.failure or failure
        except FAILURES as error:
            self._metastore_failed |= isinstance(error, MetastoreError)
            return failed(f"{decision.scan.name} can't be pruned", error)
        return selection

    def _total(self, table: Table, beyond: int = 1) -> int:
        """The number of partitions, or a smaller one that is greater than ``beyond``."""
        known = self._totals.get(table.name)
        if known is None or (known <= beyond and not self._metastore.names_are_cheap):
            self._totals[table.name] = self._metastore.partition_count(table, beyond)
        return self._totals[table.name]

    def row_filter(self, predicate: KeyPredicate, targets: Sequence[Target]) -> RowFilter | Reason:
        """The keys as a condition on a data column, or why not; samples the files first."""
        table, scan = predicate.relation.table, predicate.relation.scan
        if table.partition_columns and not table.partitions_in_metastore:
            return Reason.PARTITIONS_NOT_IN_METASTORE
        if self._metastore_failed:
            return Reason.KEY_SOURCE_FAILED
        target = next((found for found in targets if found.scan == scan), None)
        try:
            partitions = target.partitions if target else None
            if target is None and table.partition_columns:
                partitions = tuple(self._partition_names(table))
            groups = promising_row_groups(self._session, self._catalog, predicate, partitions)
            if not groups:
                return Reason.KEYS_IN_MOST_ROW_GROUPS
            keys = self._keys.of(predicate.source)
            return keys if isinstance(keys, Reason) else row_filter(predicate, keys, groups)
        except FAILURES as error:
            self._metastore_failed |= isinstance(error, MetastoreError)
            return failed(f"the files of {scan.name} can't be read", error)

    def _partition_names(self, table: Table) -> list[Partition]:
        if table.name not in self._names:
            try:
                self._names[table.name] = self._metastore.partition_names(table)
            except MetastoreError:
                self._metastore_failed = True
                raise
        return self._names[table.name]
