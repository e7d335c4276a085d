"""The partitions that a statement's keys require, whether they exist or not."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.runtime.partitions import Value
from airflow_hive_opt.runtime.required import Required, combined
from airflow_hive_opt.spark.application.application import plan_on_spark
from airflow_hive_opt.spark.application.request import Request
from airflow_hive_opt.spark.catalog.connect_catalog import catalog_of
from airflow_hive_opt.spark.local_task.key_sets import KeySets
from airflow_hive_opt.statement.errors import PlanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
    from airflow_hive_opt.pruning.plan import Plan
    from airflow_hive_opt.spark.keys.key_set import Keys

log = logging.getLogger(__name__)


def required_partitions(
    session: SparkSession, request: Request, only: Sequence[str] = ()
) -> list[Required]:
    """Returns the required partitions of every scan that keys prune, one entry for each scan.

    Only keys that a plain equality compares with a partition column count. If several small tables
    prune a scan, it requires every combination of their keys, because the join may read each of
    them. ``only`` names partition columns and limits the entries to the values of these columns.
    A scan whose keys can't be used has no entry, and the log says why. Neither has the target of
    MERGE, UPDATE and DELETE: the statement may itself add what is missing there.

    Raises ``PlanError`` if Spark rejects the statement too, or if keys do not prune one of
    ``only``. Raises ``TooManyRequiredPartitions`` for too many combinations, and Spark's errors if
    keys can't be read.
    """
    for name, value in request.session_conf.items():
        session.conf.set(name, value)
    catalog = catalog_of(session)
    planned = plan_on_spark(session, catalog, request)
    if planned.passed_through:
        log.warning("no partitions are required: %s", planned.passed_through)
        return []
    decisions = [each for each in planned.decisions if not _is_target(each, planned)]
    pruned = {name for each in decisions for name in each.columns if name in _types(each)}
    if unknown := [name for name in only if name.lower() not in pruned]:
        raise PlanError(
            "SEMANTIC",
            f"{', '.join(unknown)} are not columns to wait for: the keys of this statement prune "
            f"{', '.join(sorted(pruned)) or 'no partition column'}",
        )
    key_sets = KeySets(session, request.bounds, request.parameters, catalog.partition_names)
    chosen = frozenset(map(str.lower, only))
    found = []
    for decision in decisions:
        if not decision.pruned:
            log.info("%s requires no partitions: %s", decision.alias, decision.reason.sentence)
        entries = (_required(key_sets, one, chosen) for one in decision.separate())
        found += [entry for entry in entries if entry]
    return found


def _is_target(decision: ScanDecision, planned: Plan) -> bool:
    """Whether the scan is that of the table whose rows the statement changes."""
    if planned.row_level is None or decision.relation is None:
        return False
    if decision.relation.reference != planned.row_level.target:
        return False
    log.info("%s requires no partitions: the statement changes its rows", decision.alias)
    return True


def _types(decision: ScanDecision) -> dict[str, str]:
    """The types of the columns from whose values the table makes its partitions."""
    table = decision.table
    if not table.provider:
        return {column.name: column.type for column in table.partition_columns}
    columns = {column.name: column.type for column in table.columns}
    return {name: columns[name] for name in table.partitioned_by}


def _required(key_sets: KeySets, decision: ScanDecision, only: frozenset[str]) -> Required | None:
    types = _types(decision)
    usable: list[tuple[tuple[str, ...], frozenset[tuple[Value, ...]]]] = []
    for source in decision.sources:
        names = source.partition_columns
        if not names or source.skeletons:  # its keys alone do not determine the partitions
            log.warning("the keys of %s are not waited for: no bare equalities", source.name)
            continue
        if only and only.isdisjoint(names):
            continue
        if sorted_by := [name for name in names if name not in types]:
            log.info(
                "%s is not waited for: %s only sorts by it, and has no partitions of it",
                ", ".join(sorted_by),
                decision.alias,
            )
        if len(sorted_by) == len(names):
            continue
        tuples = _tuples(key_sets.collect(source), source, decision, types)
        if isinstance(tuples, Reason):
            log.warning("the keys of %s are not waited for: %s", source.name, tuples.sentence)
        else:
            usable.append((tuple(name for name in names if name in types), tuples))
    if not usable:
        return None
    rows = list(combined(usable))
    named = {name for names, _ in usable for name in names}
    columns = tuple(name for name in types if name in named and (not only or name in only))
    wanted = sorted({tuple(row[name] for name in columns) for row in rows})
    return Required(
        decision.table.name,
        tuple(types),
        tuple(types.values()),
        columns,
        tuple(wanted),
        decision.table.provider,
    )


def _tuples(
    keys: Keys | Reason, source: KeySource, decision: ScanDecision, types: Mapping[str, str]
) -> frozenset[tuple[Value, ...]] | Reason:
    """The keys of the columns in ``types``, or why they can't be used."""
    if isinstance(keys, Reason):
        return keys
    names = source.partition_columns
    if decision.table.provider:
        found = keys.tuples_of({at: types[name] for at, name in enumerate(names) if name in types})
    else:
        found = keys.tuples([types[name] for name in names])
    return Reason.TYPE_NOT_COMPARABLE if found is None else found
