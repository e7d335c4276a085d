"""Prelaunch of a descriptor that another application, or the worker, has made."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.binding import WORKER, OtherSession
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.restriction.indexed import snapshots_of, without_indexes
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.catalog.session_binding import check_binding
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.listed_keys import reads_current_metadata
from airflow_hive_opt.spark.local_task.snapshots import current, log_newer
from airflow_hive_opt.spark.map_join.prelaunch import check_tables, prelaunch
from airflow_hive_opt.spark.map_join.small_tables import changed_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
# A list that the worker made while Spark started counts as one that this application made: the
# partitions of one that is no older are not looked up again. Spark may have waited for a cluster.
_OLDEST = 60  # seconds


def brought_up_to_date(
    session: SparkSession, catalog: SessionCatalog, job: Job, descriptor: Descriptor
) -> Descriptor:
    """The descriptor with the partitions and files that there are now.

    Raises ``OtherSession`` if the session reads the statement differently.
    """
    check_binding(session, catalog, job.statement, descriptor)
    beside = job.stages is Stages.BOTH and descriptor.reader == WORKER
    if beside and (changed := changed_tables(session, catalog, descriptor)):
        raise OtherSession(f"{', '.join(changed)} changed while Spark started")
    check_tables(session, catalog, descriptor)
    _check_not_made_again(session, descriptor)
    targets = descriptor.targets
    if not beside or abs(descriptors.seconds_since(descriptor.created)) > _OLDEST:
        targets = prelaunch(catalog, descriptor, job.parameters)
    if job.gates.max_bytes is not None:
        targets = tuple(catalog.with_bytes(target) for target in targets)
    descriptor = _at_their_snapshots(session, descriptor)
    files = tuple(counted(session, found) for found in descriptor.planned_files)
    log_newer(session, descriptor.snapshots)
    return replace(descriptor, targets=targets, planned_files=files)


def _check_not_made_again(session: SparkSession, descriptor: Descriptor) -> None:
    """Raises ``OtherSession`` if a version from which keys come is that of another table by now."""
    for found in descriptor.snapshots:
        if not found.held or not found.table_id:
            continue
        now = best_effort(partial(current, session, found.table, with_id=True))
        if now is not None and now.table_id != found.table_id:
            raise OtherSession(
                f"{found.table} was made again after the local task, so its version "
                f"{found.snapshot} has other rows: clear the local task"
            )


def _at_their_snapshots(session: SparkSession, descriptor: Descriptor) -> Descriptor:
    """The descriptor without conditions by key indexes that are true for another snapshot only."""
    needed = snapshots_of(descriptor)
    if not needed:
        return descriptor
    is_current = reads_current_metadata(session)
    others = set()
    for table, then in needed.items():
        now = best_effort(partial(current, session, table, with_id=True)) if is_current else None
        if now is None or (now.snapshot, now.table_id) != (then.snapshot, then.table_id):
            log.info(
                "the key index of %s is not used: %s", table, IndexCode.OTHER_SNAPSHOT.sentence
            )
            others.add(table)
    return without_indexes(descriptor, others, IndexCode.OTHER_SNAPSHOT)
