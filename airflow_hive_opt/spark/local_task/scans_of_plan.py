"""The local task of a planned statement on Spark: its engine, its key set and its scans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.gates import Gates
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.earlier_runs import EarlierRuns
from airflow_hive_opt.local_task.local_task import LocalTaskResult, run_local_task
from airflow_hive_opt.local_task.shared_key_sets import SharedKeySets
from airflow_hive_opt.metastores.metastore import PartitionCatalog
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.spark.catalog.resolved_names import Names
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.described_keys import SparkKeyQueries
from airflow_hive_opt.spark.local_task.engine import SparkEngine, SparkScans
from airflow_hive_opt.spark.local_task.narrowed_tables import NarrowedTables
from airflow_hive_opt.statement.budget import Budget
from airflow_hive_opt.statement.tables import is_query

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
    indexes: StoragePath | None,
    budget: Budget,
) -> LocalTaskResult:
    """Collects the keys of the plan's scans and finds the partitions or files that match.

    ``key_sets`` is the folder of the job's key set. ``hand_over`` says that another application
    runs the map join. ``indexes`` is the folder of the key indexes. ``budget`` is that of the
    statement's planning.
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
    # With gates, or for another application, the files are counted before the statement.
    in_plan = (
        not hand_over and job.gates == Gates() and bool(job.show_rows) and is_query(job.statement)
    )
    scans = SparkScans(session, catalog, indexes, in_plan)
    result = run_local_task(context, plan, scans)
    if indexes is None:
        return result
    names = Names(session, catalog) if hand_over else None
    tables = NarrowedTables(session, context, plan, scans, job.settings, budget, names)
    return replace(result, descriptor=tables.followed(result.descriptor))
