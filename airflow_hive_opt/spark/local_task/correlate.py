"""Rewrites correlated statements by Spark's statistics, and checks the result with Spark.

The planner sees the text only, and a view may hide facts that matter. Spark's analysis therefore
decides last: the statement must be deterministic, and the rewritten query must have the
same columns with the same types. This module runs no statement.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.explain.on_spark import SparkWork
from airflow_hive_opt.rewriting import AGGREGATE_ONCE, Refusal, Rewriting, query_of, rewrite
from airflow_hive_opt.rewriting.broadcast_hints import with_broadcasts
from airflow_hive_opt.rewriting.cost import MAP_JOIN_SIZE, Cost
from airflow_hive_opt.spark.keys.stability import deterministic_plan
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.physical_operators import operators_of
from airflow_hive_opt.spark.session.spark_compat import parsed
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import DEFAULTS, Settings
from airflow_hive_opt.statement.tables import tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
    from airflow_hive_opt.statement.catalog import Catalog, Table

log = logging.getLogger(__name__)

_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
_SIZE = re.compile(r"\s*(-?)(\d+)(?:([kmgtp]?)b?)?\s*", re.IGNORECASE)
_PLAN_ID = re.compile(r"\[plan_id=\d+\]")


class StatisticsCatalog:
    """Spark's catalog with buckets, and with the statistics of ``columns``.

    Few statements need these.
    """

    def __init__(self, catalog: SessionCatalog, columns: Iterable[str]) -> None:
        self._catalog = catalog
        self._columns = frozenset(columns)
        self._tables: dict[str, Table | None] = {}

    def table(self, name: str) -> Table | None:
        """See :class:`~airflow_hive_opt.statement.catalog.Catalog`."""
        if name not in self._tables:
            found = self._catalog.table(name)
            self._tables[name] = found and self._catalog.described(found, self._columns)
        return self._tables[name]


def correlate(
    session: SparkSession,
    catalog: SessionCatalog,
    sql: str,
    settings: Settings,
    parameters: Mapping[str, object] | None = None,
) -> Rewriting:
    """Returns the rewriting to run instead of ``sql``; ``sql`` itself if that would not help.

    Runs before partition pruning, which then plans the rewritten text.
    """
    found = rewrite(sql, StatisticsCatalog(catalog, words_of(sql)), settings)
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


def broadcasting(
    session: SparkSession,
    catalog: Catalog,
    sql: str,
    settings: Settings,
    parameters: Mapping[str, object] | None = None,
) -> str:
    """The statement with broadcast hints where Hive's size settings allow a map join.

    Adds hints only if ``hive.auto.convert.join.noconditionaltask.size`` is above Hive's default:
    Spark broadcasts tables up to that size by itself.
    """
    if settings.number(MAP_JOIN_SIZE) <= int(DEFAULTS[MAP_JOIN_SIZE]):
        return sql
    threshold = bytes_of(str(session.conf.get(_THRESHOLD)))
    if threshold is None or threshold < 0:
        return sql
    hinted = with_broadcasts(sql, catalog, settings, threshold)
    if hinted == sql:
        return sql
    try:
        if is_remote(session):  # the protocol can analyse a query, but not parse a statement
            _ = session.sql(query_of(hinted), args=dict(parameters or {})).schema
        else:
            parsed(session, hinted)
    except (PlanError, PySparkException, Py4JJavaError) as error:  # TRANSFORM accepts no hint
        log.info(
            "no broadcast hints are added, because Spark rejects them in this statement: %s",
            in_words(error),
        )
        return sql
    return hinted


def words_of(sql: str) -> frozenset[str]:
    """The words of a statement in lower case, among them the columns that it names."""
    return frozenset(re.findall(r"\w+", sql.lower()))


def bytes_of(text: str) -> int | None:
    """The number of bytes in a setting of Spark's; ``None`` if it is not a size.

    >>> bytes_of("10MB"), bytes_of("10485760b"), bytes_of("-1"), bytes_of("1k"), bytes_of("much")
    (10485760, 10485760, -1, 1024, None)
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    power = " kmgtp".index(found[3].lower()) if found[3] else 0
    return int(f"{found[1]}{found[2]}") << 10 * power


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
    catalog: SessionCatalog,
    sql: str,
    found: Rewriting,
    settings: Settings,
    parameters: dict[str, Any],
) -> Refusal | None:
    try:
        plain = session.sql(query_of(sql), args=parameters)
        other = session.sql(query_of(found.sql), args=parameters)
        as_before = plain.dtypes == other.dtypes
        plan = deterministic_plan(plain)
    except (PlanError, PySparkException, Py4JJavaError) as error:
        log.debug("Spark rejects the rewritten statement: %s", error)
        return Refusal.SPARK_DISAGREES
    if plan is None or "Sample " in plan or _has_limited_view(plan.splitlines()):
        return Refusal.NOT_DETERMINISTIC
    if not as_before:
        return Refusal.SPARK_DISAGREES
    once = AGGREGATE_ONCE in found.applied and not Cost(settings).asked
    if once and _aggregates_once_already(session, catalog, sql, plain):
        return Refusal.NOT_EXPECTED_TO_WIN
    return None


def _aggregates_once_already(
    session: SparkSession, catalog: SessionCatalog, sql: str, plain: DataFrame
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
    if is_remote(plain):
        text = str(plain._explain_string())  # type: ignore[operator]
    else:
        text = str(plain._jdf.queryExecution().executedPlan().toString())
    return reuses_an_aggregate(text.splitlines())


def reuses_an_aggregate(lines: Sequence[str]) -> bool:
    """Whether a physical plan broadcasts an aggregate once and uses it again.

    >>> reuses_an_aggregate([
    ...     "Join",
    ...     ":- ReusedExchange [k#1], BroadcastExchange [k#2], [plan_id=7]",
    ...     "+- BroadcastExchange [k#2], [plan_id=7]",
    ...     "   +- HashAggregate(keys=[k#2])",
    ... ])
    True
    """
    reused = {
        found[0]
        for line in lines
        if "ReusedExchange " in line
        and "BroadcastExchange " in line
        and (found := _PLAN_ID.search(line))
    }
    for at, line in enumerate(lines):
        found = _PLAN_ID.search(line)
        if found is None or found[0] not in reused or "ReusedExchange " in line:
            continue
        for below in lines[at + 1 :]:
            if _depth(below) <= _depth(line):
                break
            if "Aggregate(" in below:
                return True
    return False


def _depth(line: str) -> int:
    """The depth of an operator in the tree of a plan's text."""
    return len(line) - len(line.lstrip(" :+-"))


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
