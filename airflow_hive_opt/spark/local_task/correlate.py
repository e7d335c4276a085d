"""Rewrites correlated statements by Spark's statistics, and checks the result with Spark.

The planner sees the text only, and a view may hide facts that matter. Spark's analysis therefore
decides last: the statement must be deterministic, and the rewritten query must have the
same columns with the same types. This module runs no statement.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.explain.on_spark import SparkWork
from airflow_hive_opt.rewriting import AGGREGATE_ONCE, Refusal, Rewriting, query_of, rewrite
from airflow_hive_opt.rewriting.broadcast_hints import with_broadcasts
from airflow_hive_opt.rewriting.cost import MAP_JOIN_SIZE, Cost
from airflow_hive_opt.spark.session.error_text import in_words
from airflow_hive_opt.spark.session.physical_operators import operators_of
from airflow_hive_opt.spark.session.spark_compat import parsed
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import DEFAULTS, Settings
from airflow_hive_opt.statement.tables import tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_hive_opt.spark.catalog.spark_catalog import SparkCatalog
    from airflow_hive_opt.statement.catalog import Catalog, Table

log = logging.getLogger(__name__)


class StatisticsCatalog:
    """Spark's catalog with buckets and statistics; few statements need these."""

    def __init__(self, catalog: SparkCatalog) -> None:
        self._catalog = catalog
        self._tables: dict[str, Table | None] = {}

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        key = name.lower()
        if key not in self._tables:
            found = self._catalog.table(key)
            self._tables[key] = found and self._catalog.described(found)
        return self._tables[key]


def correlate(
    session: SparkSession,
    catalog: SparkCatalog,
    sql: str,
    settings: Settings,
    parameters: Mapping[str, object] | None = None,
) -> Rewriting:
    """Returns the rewriting to run instead of ``sql``; ``sql`` itself if that would not help.

    Runs before partition pruning, which then plans the rewritten text.
    """
    found = rewrite(sql, StatisticsCatalog(catalog), settings)
    if not found.applied:
        return found
    refusal = _objection(session, catalog, sql, found, settings, dict(parameters or {}))
    if refusal is None:
        return found
    log.info("the Correlation Optimizer does not change the statement: %s", refusal.sentence)
    refused = tuple((name, refusal) for name in dict.fromkeys(found.applied))
    return replace(found, sql=sql, applied=(), refused=(*found.refused, *refused))


def work_on_spark(session: SparkSession, sql: str) -> SparkWork | None:
    """Spark's planned shuffles and scans for a statement; ``None`` if it rejects the query."""
    try:
        shuffles, scans = shuffles_and_scans(session.sql(query_of(sql)))
    except (PlanError, PySparkException, Py4JJavaError):
        return None
    return SparkWork(scans, shuffles)


def broadcasting(session: SparkSession, catalog: Catalog, sql: str, settings: Settings) -> str:
    """The statement with broadcast hints where Hive's size settings allow a map join.

    Adds hints only if ``hive.auto.convert.join.noconditionaltask.size`` is above Hive's default:
    Spark broadcasts tables up to that size by itself.
    """
    if settings.number(MAP_JOIN_SIZE) <= int(DEFAULTS[MAP_JOIN_SIZE]):
        return sql
    own: Any = session._jsparkSession.sessionState().conf()
    threshold = own.autoBroadcastJoinThreshold()
    if threshold < 0:
        return sql
    hinted = with_broadcasts(sql, catalog, settings, threshold)
    try:
        parsed(session, hinted)
    except (PySparkException, Py4JJavaError) as error:  # TRANSFORM accepts no hint
        log.info(
            "no broadcast hints: Spark does not read them in this statement: %s", in_words(error)
        )
        return sql
    return hinted


def shuffles_and_scans(frame: DataFrame) -> tuple[int, int]:
    """How many shuffles by key and file scans Spark plans for a frame that has not run."""
    shuffles = scans = 0
    for kind, plan in operators_of(frame):
        if kind == "ShuffleExchangeExec":
            by_key = plan.outputPartitioning().getClass().getSimpleName() != "SinglePartition$"
            shuffles += by_key
        scans += kind in ("FileSourceScanExec", "HiveTableScanExec")
    return shuffles, scans


def _objection(
    session: SparkSession,
    catalog: SparkCatalog,
    sql: str,
    found: Rewriting,
    settings: Settings,
    parameters: dict[str, Any],
) -> Refusal | None:
    try:
        plain = session.sql(query_of(sql), args=parameters)
        other = session.sql(query_of(found.sql), args=parameters)
    except (PlanError, PySparkException, Py4JJavaError) as error:
        log.debug("a rewritten statement is not accepted: %s", error)
        return Refusal.SPARK_DISAGREES
    analyzed = plain._jdf.queryExecution().analyzed()
    lines = analyzed.toString().splitlines()
    sampled = any("Sample " in line for line in lines)
    if not analyzed.deterministic() or sampled or _has_limited_view(lines):
        return Refusal.NOT_DETERMINISTIC
    if plain.dtypes != other.dtypes:
        return Refusal.SPARK_DISAGREES
    once = AGGREGATE_ONCE in found.applied and not Cost(settings).asked
    if once and _aggregates_once_already(session, catalog, sql, plain):
        return Refusal.NOT_EXPECTED_TO_WIN
    return None


def _aggregates_once_already(
    session: SparkSession, catalog: SparkCatalog, sql: str, plain: DataFrame
) -> bool:
    """Whether Spark already broadcasts an aggregate once and restricts several scans by it.

    The join then shuffles few rows. Returns ``False`` without a check under adaptive execution,
    which plans each use of the aggregate separately. The same holds for views and partitioned
    tables: Spark's plan of a partitioned table costs a listing of the whole table.
    """
    if str(session.conf.get("spark.sql.adaptive.enabled")).lower() == "true":
        return False
    tables = map(catalog.table, tables_of(sql, str(session.catalog.currentDatabase())).reads)
    if any(table is None or table.partition_columns or table.definition for table in tables):
        return False
    return any(
        kind == "ReusedExchangeExec"
        and plan.child().getClass().getSimpleName() == "BroadcastExchangeExec"
        and "Aggregate(" in plan.child().treeString()
        for kind, plan in operators_of(plain)
    )


def _has_limited_view(lines: list[str]) -> bool:
    """Whether a view in the lines of an analyzed plan has a LIMIT."""
    view = None
    for line in lines:
        text = line.lstrip(" :+-|")
        depth = len(line) - len(text)
        if view is not None and depth <= view:
            view = None
        if view is None:
            view = depth if text.startswith("View (") else None
        elif text.startswith("GlobalLimit"):
            return True
    return False
