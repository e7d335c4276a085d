"""The partitions that a statement's keys require, whether they exist or not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_hive_opt.documents import required
from airflow_hive_opt.documents.job import Job, Outcome, Status
from airflow_hive_opt.documents.required import RequiredPartitions
from airflow_hive_opt.local_task.key_sets import KeySets
from airflow_hive_opt.local_task.required_keys import not_waited_for, required_keys, types_of
from airflow_hive_opt.metastores.required import Required
from airflow_hive_opt.spark.application.planning import plan_looked_up
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.engine import SparkEngine
from airflow_hive_opt.statement.errors import PlanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath

log = logging.getLogger(__name__)


def written_required(
    session: SparkSession, catalog: SessionCatalog, job: Job, path: StoragePath
) -> Outcome:
    """Writes the required partitions, whether they exist or not.

    Raises what :func:`required_partitions` raises, and ``DescriptorError``.
    """
    tables = tuple(required_partitions(session, catalog, job, job.columns))
    found = RequiredPartitions(job.query_digest, job.columns, job.token, tables)
    required.write(found, path)
    summary = {"uri": str(path), "required": found.count}
    return Outcome(Status.DONE, found.in_words, summary)


def required_partitions(
    session: SparkSession, catalog: SessionCatalog, job: Job, only: Sequence[str] = ()
) -> list[Required]:
    """Returns the required partitions of every scan that keys prune, one entry for each scan.

    Only keys are used that a plain equality compares with a partition column. If several small
    tables prune a scan, it requires every combination of their keys, because the join may read each
    of them. ``only`` names partition columns and limits the entries to the values of these columns.
    A scan whose keys can't be used has no entry, and the log says why.

    Raises ``PlanError`` if Spark rejects the statement too, or if keys do not prune one of
    ``only``. Raises ``TooManyRequiredPartitions`` for too many combinations, and Spark's errors if
    keys can't be read or a table can't be looked up.
    """
    for warning in job.settings.warnings:
        log.warning("%s", warning)
    planned = plan_looked_up(session, catalog, job)
    if planned.passed_through:
        log.warning("no partitions are required: %s", planned.passed_through)
        return []
    decisions = [each for each in planned.decisions if not not_waited_for(each, planned)]
    pruned = {name for each in decisions for name in each.columns if name in types_of(each)}
    if unknown := [name for name in only if name.lower() not in pruned]:
        raise PlanError(
            "SEMANTIC",
            f"{', '.join(unknown)} are not columns to wait for: the keys of this statement prune "
            f"{', '.join(sorted(pruned)) or 'no partition column'}",
        )
    key_sets = KeySets(SparkEngine(session, job.bounds, job.parameters), catalog.partition_names)
    found = required_keys(planned, key_sets.collect, frozenset(map(str.lower, only)))
    for note in found.notes:
        log.warning("%s", note)
    return list(found.required(only))
