"""Plans a job's statement from the metastore's facts alone."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.pruning.plan import Plan, passing_through, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.rewriting import Refusal, rewrite
from airflow_hive_opt.rewriting.cost import MAP_JOIN_SIZE
from airflow_hive_opt.statement.budget import Budget, OverBudget
from airflow_hive_opt.statement.dialect import setting_that_differs
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import DEFAULTS
from airflow_hive_opt.statement.tables import references, tables_of
from airflow_hive_opt.worker.lakes.catalog import StatementTables
from airflow_hive_opt.worker.settings import setting_that_changes_values
from airflow_hive_opt.worker.unanswered import Unanswered

log = logging.getLogger(__name__)


def planned(job: Job, catalog: StatementTables, settings: Mapping[str, str]) -> Plan:
    """The plan of the job's statement; ``settings`` are Spark's, as far as they are known.

    Raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered` if Spark has to plan it.
    """
    sql = job.statement
    # before Spark 4.0 every session joins literals, and the session's version is not known
    if found := setting_that_differs(sql, settings.get, joins_literals=True):
        raise Unanswered(f"the setting {found} changes how the statement is read")
    if found := setting_that_changes_values(settings):
        raise Unanswered(f"with the setting {found}, Spark may read other values than the worker")
    try:
        with Budget(job.settings.switches.planning_seconds):
            catalog.look_up_together(sql)
            _check_tables(sql, catalog)
            _check_not_rewritten(job, catalog)
            found_plan = plan(sql, catalog, job.settings)
    except OverBudget:
        return passing_through(sql, Reason.PLANNING_TOO_LONG.sentence)
    except PlanError as error:  # Spark may accept it, and says better what is wrong
        raise Unanswered(f"the planner rejects the statement: {error}") from None
    for warning in found_plan.warnings:
        log.warning("%s", warning)
    return found_plan


def located(catalog: StatementTables, sql: str) -> dict[str, str | None]:
    """The location of each table that a statement reads, by the name that a session gives it."""
    names = {reference.name.lower() for reference in references(sql)}
    full = (name if "." in name else f"default.{name}" for name in names)
    return {name: table.location for name in full if (table := catalog.table(name)) is not None}


def _check_tables(sql: str, catalog: StatementTables) -> None:
    """Leaves a statement to Spark that reads anything but the metastore's own tables."""
    for reference in references(sql):
        if reference.versioned:
            raise Unanswered(f"the statement reads a version of {reference.name}")
        table = catalog.table(reference.name)
        if table is None:
            raise Unanswered(f"{reference.name} is no table of the metastore")
        if table.view is not None or table.definition is not None:
            raise Unanswered(f"{reference.name} is a view, which only Spark can read")


def _check_not_rewritten(job: Job, catalog: StatementTables) -> None:
    """Leaves a statement to Spark that Spark's sizes may cause to be rewritten."""
    if job.settings.number(MAP_JOIN_SIZE) > int(DEFAULTS[MAP_JOIN_SIZE]):
        raise Unanswered(f"{MAP_JOIN_SIZE} is raised, and only Spark adds the broadcast hints")
    found = rewrite(job.statement, catalog, job.settings)
    not_known = any(reason is Refusal.SIZE_NOT_KNOWN for _, reason in found.refused)
    if found.applied or (not_known and _spark_may_know_more(job.statement, catalog)):
        raise Unanswered("Spark's statistics decide whether the statement is rewritten")


def _spark_may_know_more(sql: str, catalog: StatementTables) -> bool:
    """Whether Spark may measure a table whose size the metastore does not know.

    It measures no partitioned table: the metastore's size is all that it knows of one.
    """
    tables = map(catalog.table, tables_of(sql).reads)
    return any(t and t.total_bytes is None and not t.partition_columns for t in tables)
