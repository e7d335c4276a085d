"""Random star joins in a process with Spark: the worker's descriptor beside Spark's.

python -m tests.worker.star_joins METASTORE_URI OUTPUT QUERIES SPARK_SETTING=VALUE ...

It writes what it has counted, and the findings, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.descriptor import Descriptor
from airflow_hive_opt.metastores.thrift.metastore import ThriftMetastore
from airflow_hive_opt.restriction.restrict import restrict, ways_of
from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.spark.map_join.prelaunch import prelaunch
from airflow_hive_opt.spark.session.session import spark_session
from airflow_hive_opt.worker import engine
from airflow_hive_opt.worker.local_task import Place, find
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.fuzz.findings import SEED, Finding, case, differing
from tests.fuzz.generator import query
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.fuzz.test_fuzz import SETTINGS
from tests.spark.stages import job_of, prune

PER_TABLES = 100
ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
FAILURES = (PySparkException, Py4JJavaError)
# Formats of the small tables: Spark's own name, or one of Hive's.
FORMATS = ("parquet", "orc", "hive parquet", "hive orc", "hive textfile")


class StarJoins:
    """Asks both for each statement, and counts what they answer."""

    def __init__(self, session, uri: str, folder: Path) -> None:
        self._session = session
        self._uri = uri
        self._path = UPath(folder) / "1.json"
        self.seen: Counter[str] = Counter()
        self.why: Counter[str] = Counter()
        self.wrong: list[str] = []

    def ask(self, sql: str, finding: Finding) -> None:
        """Compares partitions and rows of one statement."""
        plain = self._rows(sql)
        if isinstance(plain, str):
            self.seen["refused by Spark"] += 1
            return
        job = job_of(sql)
        spark = prune(self._session, job, self._path).descriptor
        self.seen["scans that Spark prunes"] += len(spark.targets)
        try:
            with _noted() as exact:
                worker = find(job, self._place()).descriptor
        except Unanswered as why:
            self.seen["unanswered"] += 1
            if spark.targets:
                self.seen["scans of unanswered statements"] += len(spark.targets)
                self.why[str(why)[:70]] += 1
            return
        self.seen["answered"] += 1
        self._compare(spark, worker, all(exact), finding)
        targets = prelaunch(catalog_of(self._session), worker, {})
        narrowed = restrict(sql, targets, ways_of(targets, is_on_glue=False), worker.row_filters)
        rows = self._rows(narrowed)
        if rows == plain:
            self.seen["rows equal"] += 1
        elif isinstance(rows, str):
            self.seen["restricted text refused by Spark"] += 1
        else:
            self.wrong.append(finding(restricted=narrowed, **differing(plain, rows)))

    def _compare(
        self, spark: Descriptor, worker: Descriptor, exact: bool, finding: Finding
    ) -> None:
        own = {target.scan.reference: target for target in worker.targets}
        theirs = {target.scan.reference: target for target in spark.targets}
        self.seen["scans that only the worker prunes"] += len(own.keys() - theirs.keys())
        for reference, target in theirs.items():
            if reference not in own:
                self.seen["scans left whole"] += 1
                reasons = {each.scan.reference: each.reason for each in worker.decisions}
                self.why[f"left whole: {reasons.get(reference)}"] += 1
                continue
            mine, wanted = (
                {partition.values for partition in each.partitions}
                for each in (own[reference], target)
            )
            self.seen["same partitions" if mine == wanted else "more partitions"] += 1
            if wanted - mine or (exact and mine != wanted):
                self.wrong.append(
                    finding(
                        scan=target.scan.name,
                        exact=exact,
                        only_spark=wanted - mine,
                        only_worker=mine - wanted,
                    )
                )

    def _rows(self, sql: str) -> list[tuple] | str:
        try:
            return sorted(map(tuple, self._session.sql(sql).collect()), key=repr)
        except FAILURES as error:
            return str(error)

    def _place(self) -> Place:
        return Place(
            ThriftMetastore(self._uri), False, {}, lambda uri: UPath(uri.removeprefix("file:"))
        )


@contextmanager
def _noted() -> Iterator[list[bool]]:
    """For each question that the worker's engine answers in the block, whether it is exact."""
    collect, fulfilling, found = engine.collect, engine.fulfilling, []

    def collected(*arguments):
        keys = collect(*arguments)
        found.append(getattr(keys, "exact", True))
        return keys

    def fulfilled(*arguments):
        answer = fulfilling(*arguments)
        found.append(answer is None or answer.exact)
        return answer

    engine.collect, engine.fulfilling = collected, fulfilled
    try:
        yield found
    finally:
        engine.collect, engine.fulfilling = collect, fulfilling


def made(session, seed: int) -> None:
    """The tables; the small ones have a format each, and Hive's serde reads one of the facts."""
    for table in (*FACTS, *DIMENSIONS):
        session.sql(f"DROP TABLE IF EXISTS {table}")
    setup(session, seed)
    by_serde = list(FACTS)[seed % len(FACTS)]
    _write(session, by_serde, "hive textfile", list(FACTS[by_serde][1]))
    for at, table in enumerate(DIMENSIONS):
        _write(session, table, FORMATS[(seed + at) % len(FORMATS)], [])


def _write(session, table: str, format_: str, partitioned: list[str]) -> None:
    """Writes a table again, in another format."""
    rows = session.createDataFrame(session.table(table).collect(), session.table(table).schema)
    session.sql(f"DROP TABLE {table}")
    owner, _, own = format_.rpartition(" ")
    writer = rows.coalesce(1).write.partitionBy(*partitioned)
    writer = writer.format("hive").option("fileFormat", own) if owner else writer.format(own)
    writer.saveAsTable(table)


def main() -> None:
    """Asks as many statements as the command line says."""
    uri, output, queries, *pairs = sys.argv[1:]
    conf = {**SETTINGS, **dict(pair.split("=", 1) for pair in pairs)}
    with spark_session("star joins", conf) as session:
        session.sparkContext.setLogLevel("ERROR")
        asked = StarJoins(session, uri, Path(output).parent)
        for number in range(int(queries)):
            rng = random.Random(SEED * 3_000_003 + number)
            session.conf.set("spark.sql.ansi.enabled", "false")
            session.conf.set("spark.sql.session.timeZone", "UTC")
            if number % PER_TABLES == 0:
                made(session, SEED + number // PER_TABLES)
            session.conf.set("spark.sql.ansi.enabled", str(rng.random() < 0.5).lower())
            session.conf.set("spark.sql.session.timeZone", rng.choice(ZONES))
            sql = query(SEED * 1_000_003 + number).sql
            with case(f"query {number}", statement=sql) as finding:
                asked.ask(sql, finding)
            if number % 50 == 49:
                print(number + 1, dict(asked.seen), len(asked.wrong), flush=True)
        for table in (*FACTS, *DIMENSIONS):
            session.sql(f"DROP TABLE IF EXISTS {table}")
    found = {
        "seen": dict(asked.seen),
        "why": dict(asked.why.most_common(40)),
        "wrong": asked.wrong,
    }
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
