"""The map-join stage: prelaunch, then the statement itself (HIVE-5119, steps 6 and 7)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.runtime.descriptor import Descriptor, Target
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.restrict import restrict
from airflow_hive_opt.spark.words import in_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)
_SCRIPT = re.compile(r"\s*begin\b", re.IGNORECASE)


def prelaunch(catalog: SparkCatalog, descriptor: Descriptor) -> tuple[Target, ...]:
    """The descriptor's targets, less the partitions that have gone since it was written."""
    targets = []
    for target in descriptor.targets:
        table = catalog.table(target.table)
        if table is None:  # the statement itself will say so, in Spark's words
            return ()
        present = {partition.values for partition in catalog.partition_names(table)}
        kept = tuple(part for part in target.partitions if part.values in present)
        if len(kept) < target.kept:
            log.warning(
                "%d of %d partitions of %s are gone since their list was made",
                target.kept - len(kept),
                target.kept,
                target.table,
            )
        targets.append(replace(target, partitions=kept))
    return tuple(targets)


def run_map_join(
    session: SparkSession,
    sql: str,
    targets: tuple[Target, ...],
    parameters: Mapping[str, object],
) -> tuple[DataFrame, str | None]:
    """Runs the statement with its scans narrowed; a SELECT's rows are in the frame that returns.

    Where Spark accepts the statement but not its narrowed form, the statement runs as it is; the
    second value then says what Spark had against the other.
    """
    narrowed = restrict(sql, targets)
    log.debug("running: %s", narrowed)
    try:
        return session.sql(narrowed, args=dict(parameters)), None
    except AnalysisException as error:
        if narrowed == sql or not accepts(session, sql, parameters):
            raise
        objection = in_words(error)
        log.warning("the narrowed statement is refused, running the plain one: %s", objection)
        return session.sql(sql, args=dict(parameters)), objection


def accepts(session: SparkSession, sql: str, parameters: Mapping[str, object]) -> bool:
    """Whether Spark can parse and resolve the statement; nothing is run.

    A script, which EXPLAIN does not take, is only parsed.
    """
    try:
        if _SCRIPT.match(sql):
            session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
            return True
        rows = session.sql(f"EXPLAIN {sql}", args=dict(parameters)).collect()
    except (PySparkException, Py4JJavaError):
        return False
    return not rows[0][0].startswith("Error occurred during query planning")
