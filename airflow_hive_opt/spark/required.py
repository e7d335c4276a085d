"""Which partitions a statement's keys call for, whether they are there or not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.runtime.partitions import Value
from airflow_hive_opt.runtime.required import Required, combined
from airflow_hive_opt.spark.application import Request, plan_on_spark
from airflow_hive_opt.spark.connect_catalog import catalog_of
from airflow_hive_opt.spark.keys import collect_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.planner.pruning import ScanDecision

log = logging.getLogger(__name__)


def required_partitions(session: SparkSession, request: Request) -> list[Required]:
    """One entry for every scan that keys prune.

    Only keys that bare equalities compare with partition columns can be waited for. Where several
    small tables prune a scan, every combination of their keys is called for. A scan
    whose keys can't be used calls for nothing, with a line in the log. Raises ``PlanError`` where
    Spark rejects the statement too, ``TooMuchToWaitFor`` for too many combinations.
    """
    for name, value in request.session_conf.items():
        session.conf.set(name, value)
    planned = plan_on_spark(session, catalog_of(session), request)
    if planned.passed_through:
        log.warning("nothing is called for: %s", planned.passed_through)
        return []
    found = []
    for decision in planned.decisions:
        if not decision.pruned:
            log.info("%s calls for nothing: %s", decision.alias, decision.reason.sentence)
        elif entry := _required(session, request, decision):
            found.append(entry)
    return found


def _required(session: SparkSession, request: Request, decision: ScanDecision) -> Required | None:
    types = {column.name: column.type for column in decision.table.partition_columns}
    usable: list[tuple[tuple[str, ...], frozenset[tuple[Value, ...]]]] = []
    for source in decision.sources:
        names = source.partition_columns
        if not names or source.skeletons:  # what it calls for is not said by values
            log.warning("the keys of %s are not waited for: no bare equalities", source.name)
            continue
        keys = collect_keys(session, source, request.max_keys, request.parameters)
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
    columns = tuple(name for name in types if name in named)
    wanted = sorted({tuple(row[name] for name in columns) for row in rows})
    return Required(
        decision.table.name, tuple(types), tuple(types.values()), columns, tuple(wanted)
    )
