"""The map-join stage: prelaunch, then the statement itself (HIVE-5119, steps 6 and 7)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.runtime.descriptor import Descriptor, Target
from airflow_hive_opt.spark.connect import is_remote
from airflow_hive_opt.spark.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.words import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
# Spark's optimizer gave up, which it does before anything runs.
_UNPLANNED = "PLAN_VALIDATION_FAILED"
_SCRIPT = re.compile(r"\s*begin\b", re.IGNORECASE)


def prelaunch(
    catalog: SessionCatalog, descriptor: Descriptor, parameters: Mapping[str, object]
) -> tuple[Target, ...]:
    """The descriptor's targets as the metastore holds them now.

    Partitions that have gone are dropped. Where one filter found the partitions, it is asked
    again, so that new ones which the same keys call for are read too.
    """
    targets = []
    for target in descriptor.targets:
        table = catalog.table(target.table)
        if table is None:  # the statement itself will say so, in Spark's words
            return ()
        if target.filter:
            found = catalog.partitions_by_filter(table, target.alias, target.filter, parameters)
            kept = tuple(found)
        elif target.partitions:
            present = {partition.values for partition in catalog.partition_names(table)}
            kept = tuple(part for part in target.partitions if part.values in present)
        else:
            kept = ()
        before, after = ({part.values for part in parts} for parts in (target.partitions, kept))
        if gone := len(before - after):
            log.warning("%d of %d partitions of %s are gone", gone, target.kept, target.table)
        if new := len(after - before):
            log.info("%d partitions of %s are new since the keys were read", new, target.table)
        targets.append(replace(target, partitions=kept))
    return tuple(targets)


@dataclass(frozen=True)
class Answer:
    """A statement's columns and first rows; ``text`` is what ran, ``objection`` why none before."""

    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    objection: str | None


def run_map_join(
    session: SparkSession, texts: Sequence[str], parameters: Mapping[str, object], max_rows: int
) -> Answer:
    """Runs the first of ``texts`` that Spark takes, and brings a SELECT's first rows.

    They say the same, the narrowest first and the statement as it is last. Where Spark refuses one
    before any work, the next has its turn.
    """
    *narrowed, plain = dict.fromkeys(texts)
    objection = None
    for text in narrowed:
        log.debug("running: %s", text)
        try:
            return _answer(session, text, parameters, max_rows, objection)
        except (PySparkException, Py4JJavaError) as error:
            if not _before_any_work(error):
                raise
            objection = in_words(error)
            log.warning("the narrowed statement is refused, a wider one runs: %s", objection)
    return _answer(session, plain, parameters, max_rows, objection)


def _answer(
    session: SparkSession,
    text: str,
    parameters: Mapping[str, object],
    max_rows: int,
    objection: str | None,
) -> Answer:
    frame = session.sql(text, args=dict(parameters))
    columns = tuple(frame.columns)
    rows = tuple(map(tuple, frame.take(max_rows))) if columns else ()
    return Answer(text, columns, rows, objection)


def _before_any_work(error: Exception) -> bool:
    return isinstance(error, AnalysisException) or _UNPLANNED in str(error)


def accepts(session: SparkSession, sql: str, parameters: Mapping[str, object]) -> bool:
    """Whether Spark can parse and resolve the statement; nothing is run.

    A script, which EXPLAIN does not take, is only parsed; over Spark Connect not even that.
    """
    try:
        if _SCRIPT.match(sql):
            if is_remote(session):
                return True
            session._jsparkSession.sessionState().sqlParser().parsePlan(sql)
            return True
        rows = session.sql(f"EXPLAIN {sql}", args=dict(parameters)).collect()
    except (PySparkException, Py4JJavaError):
        return False
    return not rows[0][0].startswith("Error occurred during query planning")
