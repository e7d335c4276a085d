"""The local task of a planned statement on Spark: its engine, its key set and its scans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import EarlierRuns
from airflow_hive_opt.local_task.local_task import LocalTaskResult, run_local_task
from airflow_hive_opt.local_task.shared_key_sets import SharedKeySets
from airflow_hive_opt.metastores.metastore import PartitionCatalog
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.described_keys import SparkKeyQueries
from airflow_hive_opt.spark.local_task.engine import SparkEngine, SparkScans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.documents.storage import StoragePath


def prune_scans(
    session: SparkSession,
    catalog: SessionCatalog,
    job: Job,
    metastore: PartitionCatalog,
    plan: Plan,
    hand_over: bool,
    key_sets: StoragePath | None,
    indexes: StoragePath | None = None,
) -> LocalTaskResult:
    """Collects the keys of the plan's scans and finds the partitions or files that match.

    ``key_sets`` is the folder of the job's key set. ``hand_over`` says that another application
    runs the map join. ``indexes`` is the folder of the key indexes.
    """
    shared = None
    if key_sets is not None:
        shared = SharedKeySets(key_sets, SparkKeyQueries(session, job))
    context = LocalTaskContext(
        SparkEngine(session, job.bounds, job.parameters, from_metadata=True),
        metastore,
        catalog.is_on_glue,
        job.parameters,
        EarlierRuns(job.skipped_keys, job.skipped_indexes),
        hand_over,
        shared,
    )
    return run_local_task(context, plan, SparkScans(session, catalog, indexes))
