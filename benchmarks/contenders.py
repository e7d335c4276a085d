"""The contenders that run one star join over a partitioned table, by their names in results."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from upath import UPath

from airflow_hive_opt.documents import descriptor as descriptors
from airflow_hive_opt.documents.descriptor import query_digest
from airflow_hive_opt.documents.job import Job, Stages
from airflow_hive_opt.spark.session.session_conf import conf_set
from benchmarks.measure import Cost, Meter
from tests.spark.stages import join, map_join, prune

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = "Spark as it comes"
TUNED = "Spark, listing tuned"
SWITCHED = "Spark, every switch on"
OURS = "ours"
SPLIT = "ours, split"
FLOOR = "literal list"
ASKED = "key query, literal list"
CONTENDERS = (SPARK, TUNED, SWITCHED, OURS, SPLIT, ASKED, FLOOR)

TUNING = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "4"}
_PRUNING = "spark.sql.optimizer.dynamicPartitionPruning"
# Off by default: pruning by an extra query, and by values of a broadcast that exists anyway.
EVERY_SWITCH = {
    f"{_PRUNING}.reuseBroadcastOnly": "false",
    f"{_PRUNING}.broadcastProjection.enabled": "true",
}
_SETTINGS = {TUNED: TUNING, SWITCHED: {**TUNING, **EVERY_SWITCH}}
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Statement:
    """A statement, the same statement with literal partitions, and its partitioned tables.

    ``keys`` is the query that finds the literal partitions. ``skipped_keys`` is what the run before
    this one found out, which the operator reads from XCom.
    """

    sql: str
    literal: str
    partitioned: tuple[str, ...]
    keys: str = ""
    skipped_keys: Mapping[str, int] = field(default_factory=dict)


def star_join(session: SparkSession, partitions: int, matching: int) -> Statement:
    """The growth benchmark's statement, which needs ``matching`` of ``partitions`` days."""
    fact, dimension = f"bench.fact_{partitions}", f"bench.dim_{partitions}"
    keys = f"SELECT DISTINCT ds FROM {dimension} WHERE rank < {matching}"
    rows = session.sql(keys).collect()
    days = ", ".join(f"'{row[0]}'" for row in rows)
    sql = (
        "SELECT count(*) AS n, sum(f.amount) AS amount, sum(crc32(f.ds)) AS days "
        f"FROM {fact} f JOIN {dimension} d ON f.ds = d.ds WHERE d.rank < {matching}"
    )
    return Statement(sql, f"{sql} AND f.ds IN ({days})", (fact,), keys)


def warm_run(
    session: SparkSession, meter: Meter, contender: str, statement: Statement
) -> tuple[Cost, Rows]:
    """One contender's cost and rows in a session that has run before.

    Spark's cached listings and metadata are dropped first, because a scheduled job has none.
    """
    cost = None
    with tempfile.TemporaryDirectory() as scratch:
        for phase in phases(contender):
            for table in statement.partitioned:
                session.sql(f"REFRESH TABLE {table}")
            part, rows = cold_run(session, meter, contender, phase, statement, Path(scratch))
            cost = part if cost is None else cost + part
    return cost, rows


def phases(contender: str) -> tuple[str, ...]:
    """The applications that a contender runs, one after the other."""
    return ("prune", "join") if contender == SPLIT else ("all",)


def cold_run(
    session: SparkSession,
    meter: Meter,
    contender: str,
    phase: str,
    statement: Statement,
    scratch: Path,
) -> tuple[Cost, Rows]:
    """One phase of one contender; phases pass data through files in ``scratch``."""
    sql, path = statement.sql, UPath(scratch / "descriptor.json")
    if phase == "prune":
        return meter.run(lambda: split_prune(session, sql, path))
    if phase == "join":
        return meter.run(lambda: split_join(session, sql, path))
    if contender == OURS:
        return meter.run(lambda: ours(session, statement, path))
    texts = {FLOOR: [statement.literal], ASKED: [statement.keys, statement.literal]}
    with conf_set(session, _SETTINGS.get(contender, {})):
        return meter.run(lambda: _rows(session, texts.get(contender, [sql])))


def check_same_rows(answers: Mapping[str, Rows], setting: object) -> None:
    """Exits if the contenders' rows differ."""
    texts = {name: json.dumps(rows, default=str) for name, rows in answers.items()}
    if len(set(texts.values())) > 1:
        sys.exit(f"the contenders disagree at {setting}: {texts}")


def _rows(session: SparkSession, texts: list[str]) -> Rows:
    """Runs the statements and returns the rows of the last one."""
    frames = [session.sql(text).collect() for text in texts]
    return [tuple(row) for row in frames[-1]]


def ours(session: SparkSession, statement: Statement, path: UPath) -> Rows:
    """Local task and map join in one application, as the operator runs them."""
    job = replace(_job(statement.sql), skipped_keys=statement.skipped_keys)
    pruned = prune(session, job, path, hand_over=False)
    return list(join(session, job, pruned, path).rows)


def split_prune(session: SparkSession, sql: str, path: UPath) -> Rows:
    """Only the local task."""
    prune(session, _job(sql), path)
    return []


def split_join(session: SparkSession, sql: str, path: UPath) -> Rows:
    """Only the map join, from a descriptor that another application wrote."""
    job = replace(_job(sql), stages=Stages.MAP_JOIN)
    found = descriptors.read(path, query_digest(job.sql, job.parameters))
    return list(map_join(session, job, path, found.digest).rows)


def _job(sql: str) -> Job:
    return Job(sql, show_rows=1_000_000)
