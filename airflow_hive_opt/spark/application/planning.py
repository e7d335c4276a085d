"""Plans a request's statement with Spark's catalog; what can't be planned passes through."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.pruning.plan import Plan, passing_through, plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.application.request import Request
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.correlate import broadcasting, correlate
from airflow_hive_opt.spark.map_join.prelaunch import accepts
from airflow_hive_opt.spark.session.dialect import other_reading
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.statement.budget import OverBudget
from airflow_hive_opt.statement.errors import PlanError, TooComplex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def plan_on_spark(session: SparkSession, catalog: SessionCatalog, request: Request) -> Plan:
    """Plans the request's statement; a statement that only Spark understands passes through.

    Raises ``PlanError`` if Spark rejects the statement too.
    """
    sql = request.sql
    if setting := other_reading(session, sql):
        return passing_through(sql, f"{setting} changes how the statement is read")
    try:
        return plan(sql, catalog, request.settings)
    except OverBudget:
        return passing_through(sql, Reason.PLANNING_TOO_LONG.sentence)
    except TooComplex as error:  # to ask Spark too would take as long as its run does
        return passing_through(sql, str(error))
    except PlanError as error:
        if not accepts(session, sql, request.parameters):
            raise
        return passing_through(sql, f"the planner says {error}, but Spark accepts it")
    except (PySparkException, Py4JJavaError) as error:
        return passing_through(sql, f"a table can't be looked up: {in_words(error)}")
    except Exception as error:
        log.warning("the planner fails on this statement", exc_info=True)
        return passing_through(sql, f"the planner fails on it ({type(error).__name__})")


def rewritten_on_spark(
    session: SparkSession, catalog: SessionCatalog, request: Request
) -> str | None:
    """Applies the correlation rules and map join sizes; ``None`` if the statement is unchanged."""
    if other_reading(session, request.sql):
        return None
    try:
        found = correlate(session, catalog, request.sql, request.settings, request.parameters)
        sql = broadcasting(session, catalog, found.sql, request.settings, request.parameters)
    except (PySparkException, Py4JJavaError) as error:  # a table can't be looked up
        log.info("not rewritten: %s", in_words(error))
        return None
    except OverBudget as error:
        log.info("not rewritten: %s", error)
        return None
    except Exception:
        log.warning("the rewriting fails on this statement", exc_info=True)
        return None
    if found.applied:
        log.info("rewritten by the Correlation Optimizer: %s", ", ".join(found.applied))
    for name, reason in found.refused:
        log.debug("not rewritten (%s): %s", name, reason.sentence)
    return sql if sql != request.sql else None
