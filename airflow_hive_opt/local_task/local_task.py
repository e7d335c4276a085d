"""The local task: from keys and a metastore to a descriptor (HIVE-5119, the local work)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from airflow_hive_opt.documents.descriptor import Descriptor, now, query_digest
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.required_keys import FoundKeys
from airflow_hive_opt.local_task.changes import changes_of
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.partitioned_scans import PartitionedScan
from airflow_hive_opt.local_task.required_keys import collected_keys
from airflow_hive_opt.local_task.scan_kinds import Entry, OtherScans, RestrictedScan
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalTaskResult:
    """The descriptor, the joins that the keys make redundant, and the keys for sensors.

    - ``redundant`` are the joins that the keys decide completely. They may be left out only as long
      as the small tables do not change.
    - ``keys`` are those for sensors, if the results are handed over and all keys were read.
    """

    descriptor: Descriptor
    redundant: tuple[RedundantJoin, ...] = ()
    keys: FoundKeys | None = None


def run_local_task(context: LocalTaskContext, plan: Plan, others: OtherScans) -> LocalTaskResult:
    """Collects the keys of every prunable scan and finds the partitions or files that match."""
    scans: list[RestrictedScan] = [
        others.lake_scan(context, decision, plan)
        if decision.pruned and decision.table.provider
        else PartitionedScan(context, decision)
        for decision in plan.decisions
    ]
    context.keys.collect_together([source for scan in scans for source in scan.key_sources()])
    entries = [scan.entry() for scan in scans]
    targets = {entry.target.scan: entry.target for entry in entries if entry.target}
    for predicate in plan.predicates:
        target = targets.get(predicate.relation.scan)
        entries.append(others.data_column(context, predicate, target).entry())
    return LocalTaskResult(
        _descriptor(context, plan, entries),
        _redundant(plan, entries),
        _keys_for_sensors(context, plan) if context.hand_over else None,
    )


def _descriptor(context: LocalTaskContext, plan: Plan, entries: list[Entry]) -> Descriptor:
    return Descriptor(
        query_digest(plan.sql, context.parameters),
        now(),
        tuple(entry.target for entry in entries if entry.target),
        tuple(entry.decision for entry in entries if entry.decision),
        tuple(row_filter for entry in entries for row_filter in entry.filters),
        tuple(entry.files for entry in entries if entry.files),
        changes=changes_of(plan),
        key_sets=tuple(context.shared.uses) if context.shared else (),
        index_filters=tuple(each for entry in entries for each in entry.index_filters),
        index_uses=tuple(each for entry in entries for each in entry.index_uses),
        held_scans=tuple(dict.fromkeys(held for entry in entries for held in entry.held_scans)),
    )


def _redundant(plan: Plan, entries: list[Entry]) -> tuple[RedundantJoin, ...]:
    written = (plan.target or "").rpartition(".")[2]  # Spark may refuse to write a table it reads
    found = (join for entry in entries for join in entry.redundant)
    return tuple(join for join in found if join.table.short_name != written)


def _keys_for_sensors(context: LocalTaskContext, plan: Plan) -> FoundKeys | None:
    """The keys of all scans, as far as they have been read; an error costs only a sensor."""
    try:
        return collected_keys(plan, context.keys)
    except context.engine.failures as error:
        log.info("the keys are not stored, so a sensor will read them again: %s", in_words(error))
        return None
