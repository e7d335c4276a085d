"""The partitions that a statement's keys require, whether they exist or not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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

    from airflow_hive_opt.pruning.decisions import ScanDecision

log = logging.getLogger(__name__)


def required_partitions(
    session: SparkSession, request: Request, only: Sequence[str] = ()
) -> list[Required]:
    """Returns the required partitions of every scan that keys prune, one entry for each scan.

    Only keys that a plain equality compares with a partition column count. If several small tables
    prune a scan, it requires every combination of their keys, because the join may read each of
    them. ``only`` names partition columns and limits the entries to the values of these columns.
    A scan whose keys can't be used has no entry, and the log says why.

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
    pruned = {name for decision in planned.decisions for name in decision.columns}
    if unknown := [name for name in only if name.lower() not in pruned]:
        raise PlanError(
            "SEMANTIC",
            f"{', '.join(unknown)} are not columns to wait for: the keys of this statement prune "
            f"{', '.join(sorted(pruned)) or 'no partition column'}",
        )
    key_sets = KeySets(session, request.bounds, request.parameters, catalog.partition_names)
    chosen = frozenset(map(str.lower, only))
    found = []
    for decision in planned.decisions:
        if not decision.pruned:
            log.info("%s requires no partitions: %s", decision.alias, decision.reason.sentence)
        entries = (_required(key_sets, one, chosen) for one in decision.separate())
        found += [entry for entry in entries if entry]
    return found


def _required(key_sets: KeySets, decision: ScanDecision, only: frozenset[str]) -> Required | None:
    types = {column.name: column.type for column in decision.table.partition_columns}
    usable: list[tuple[tuple[str, ...], frozenset[tuple[Value, ...]]]] = []
    for source in decision.sources:
        names = source.partition_columns
        if not names or source.skeletons:  # its keys alone do not determine the partitions
            log.warning("the keys of %s are not waited for: no bare equalities", source.name)
            continue
        if only and only.isdisjoint(names):
            continue
        keys = key_sets.collect(source)
        tuples = None if isinstance(keys, Reason) else keys.tuples([types[name] for name in names])
        if tuples is None:
            reason = keys if isinstance(keys, Reason) else Reason.TYPE_NOT_COMPARABLE
            log.warning("the keys of %s are not waited for: %s", source.name, reason.sentence)
        else:
            usable.append((names, tuples))
    if not usable:
        return None
    rows = list(combined(usable))
    named = {name for names, _ in usable for name in names}
    columns = tuple(name for name in types if name in named and (not only or name in only))
    wanted = sorted({tuple(row[name] for name in columns) for row in rows})
    return Required(
        decision.table.name, tuple(types), tuple(types.values()), columns, tuple(wanted)
    )
