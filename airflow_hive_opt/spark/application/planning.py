"""Plans a job's statement with Spark's catalog; what can't be planned passes through."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.index_trial import TrialArm
from airflow_hive_opt.documents.job import Job
from airflow_hive_opt.local_task.handed_over import only_identified
from airflow_hive_opt.local_task.index_trial import arm_of
from airflow_hive_opt.pruning.plan import Plan, passing_through, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.resolved_names import Names, ResolvedNames
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.correlate import broadcasting, correlate
from airflow_hive_opt.spark.local_task.snapshots import hold, key_snapshots
from airflow_hive_opt.spark.map_join.prelaunch import accepts
from airflow_hive_opt.spark.session.dialect import why_read_differently
from airflow_hive_opt.statement.budget import Budget, OverBudget
from airflow_hive_opt.statement.errors import PlanError, TooComplex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlannedStatement:
    """The statement that the local task prunes.

    - ``plan`` is the plan of the user's statement, or of its rewritten form.
    - ``names`` is what the user's names stand for; ``None`` if nothing is handed over.
    - ``snapshots`` are those of the lake tables that give keys.
    - ``is_users_own`` says that all scans and keys are those of the user's statement.
    """

    plan: Plan
    names: ResolvedNames | None = None
    snapshots: tuple[Snapshot, ...] = ()
    is_users_own: bool = True


def plan_job(
    session: SparkSession, catalog: SessionCatalog, job: Job, hand_over: bool, budget: Budget
) -> PlannedStatement:
    """Resolves names, rewrites the statement if that is faster, and plans it.

    ``hand_over`` says that another application runs the map join. It then gets only keys and
    conditions whose names it can recognize. Raises ``PlanError`` if Spark rejects the statement
    too.
    """
    for warning in job.settings.warnings:
        log.warning("%s", warning)
    if arm_of(job) is TrialArm.UNTOUCHED:
        return PlannedStatement(passing_through(job.statement, Reason.LEFT_TO_SPARK.sentence))
    names = Names(session, catalog) if hand_over else None
    with budget:
        with suppress(Exception):  # the planner says what is wrong with the statement
            catalog.look_up_together(job.statement)
        # Before the keys are read: the map join notices what changes in between.
        resolved = names.resolve([job.statement]) if names else None
        rewritten = None
        if resolved is None or not resolved.unidentified:
            rewritten = rewritten_on_spark(session, catalog, job)
        plan = plan_on_spark(session, catalog, job, rewritten)
    if plan.passed_through:
        return PlannedStatement(plan)
    snapshots = key_snapshots(session, catalog, plan)
    if job.hold_snapshots:
        plan, snapshots = _held(session, catalog, job, plan, snapshots)
    decisions = plan.decisions
    if names is not None:
        plan = only_identified(plan, lambda texts: names.resolve(texts).unidentified)
    is_users_own = rewritten is None and plan.decisions == decisions
    return PlannedStatement(plan, resolved, snapshots, is_users_own)


def plan_on_spark(
    session: SparkSession, catalog: SessionCatalog, job: Job, sql: str | None = None
) -> Plan:
    """Like :func:`plan_looked_up`, but a statement whose tables can't be looked up passes through.

    Raises ``PlanError`` if Spark rejects the statement too.
    """
    try:
        return plan_looked_up(session, catalog, job, sql)
    except (PySparkException, Py4JJavaError) as error:
        why = f"a table can't be looked up: {in_words(error)}"
        return passing_through(sql or job.statement, why)


def plan_looked_up(
    session: SparkSession, catalog: SessionCatalog, job: Job, sql: str | None = None
) -> Plan:
    """Plans the job's statement, or ``sql`` in its place.

    A statement that only Spark understands passes through. Raises ``PlanError`` if Spark rejects
    the statement too, and Spark's errors if a table can't be looked up.
    """
    sql = sql or job.statement
    if setting := why_read_differently(session, sql):
        return passing_through(sql, f"the setting {setting} changes how the statement is read")
    try:
        return plan(sql, catalog, job.settings)
    except OverBudget:
        return passing_through(sql, Reason.PLANNING_TOO_LONG.sentence)
    except TooComplex as error:  # to ask Spark too would take as long as its run does
        return passing_through(sql, str(error))
    except PlanError as error:
        if not accepts(session, sql, job.parameters):
            raise
        return passing_through(sql, f"Spark accepts the statement, but not the planner: {error}")
    except (PySparkException, Py4JJavaError):
        raise
    except Exception as error:
        log.warning("the planner fails on this statement", exc_info=True)
        return passing_through(sql, f"the planner fails on the statement ({type(error).__name__})")


def rewritten_on_spark(session: SparkSession, catalog: SessionCatalog, job: Job) -> str | None:
    """Applies the correlation rules and map join sizes; ``None`` if the statement is unchanged."""
    sql = job.statement
    if why_read_differently(session, sql):
        return None
    try:
        found = correlate(session, catalog, sql, job.settings, job.parameters)
        rewritten = broadcasting(session, catalog, found.sql, job.settings, job.parameters)
    except (PySparkException, Py4JJavaError) as error:  # a table can't be looked up
        log.info("the statement is not rewritten: %s", in_words(error))
        return None
    except OverBudget as error:
        log.info("the statement is not rewritten: %s", error)
        return None
    except Exception:
        log.warning("the Correlation Optimizer fails on this statement", exc_info=True)
        return None
    if found.applied:
        rules = ", ".join(found.applied)
        log.info("the statement is rewritten by the Correlation Optimizer: %s", rules)
    for name, reason in found.refused:
        log.debug("the rule %s did not rewrite the statement: %s", name, reason.sentence)
    return rewritten if rewritten != sql else None


def _held(
    session: SparkSession,
    catalog: SessionCatalog,
    job: Job,
    plan: Plan,
    snapshots: tuple[Snapshot, ...],
) -> tuple[Plan, tuple[Snapshot, ...]]:
    """The plan of the statement held to ``snapshots``, and which of them are held."""
    if not snapshots:
        log.warning("no table is held to a snapshot: the keys come from no table with snapshots")
        return plan, snapshots
    holding = hold(session, catalog, plan, snapshots)
    replanned = plan_on_spark(session, catalog, job, holding.sql)
    if replanned.passed_through:
        log.warning("no table is held to a snapshot: %s", replanned.passed_through)
        return plan, snapshots
    holding.log()
    return replanned, holding.snapshots
