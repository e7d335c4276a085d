"""Prelaunch of a descriptor that another application, or the worker, has made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.binding import WORKER, OtherSession
from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.catalog.session_binding import check_binding
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.snapshots import log_newer
from airflow_hive_opt.spark.map_join.prelaunch import check_tables, prelaunch
from airflow_hive_opt.spark.map_join.small_tables import changed_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    targets = descriptor.targets
    if not beside or abs(descriptors.seconds_since(descriptor.created)) > _OLDEST:
        targets = prelaunch(catalog, descriptor, job.parameters)
    if job.gates.max_bytes is not None:
        targets = tuple(catalog.with_bytes(target) for target in targets)
    files = tuple(counted(session, found) for found in descriptor.planned_files)
    log_newer(session, descriptor.snapshots)
    return replace(descriptor, targets=targets, planned_files=files)
