"""Random queries, each in three ways: pruned, plain, and with its contributing partitions listed.

``make fuzz N=5000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from statistics import median

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.runtime.descriptor import Target
from airflow_hive_opt.spark.application.application import prune
from airflow_hive_opt.spark.application.request import Request
from airflow_hive_opt.spark.catalog.connect_catalog import catalog_of
from airflow_hive_opt.spark.local_task import data_column_keys as key_predicates
from airflow_hive_opt.spark.map_join.prelaunch import prelaunch
from airflow_hive_opt.spark.restriction.restrict import restrict
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.statement.settings import KEY_PREDICATE, Settings
from tests.fuzz.generator import Query, Scan, query
from tests.fuzz.schema import FACTS, setup

SEED = int(os.environ.get("FUZZ_SEED", "1"))
QUERIES = int(os.environ.get("FUZZ_QUERIES", "100"))
PER_DATABASE = 500
# Leaving out a partition that gave no row may make NULLs in its place.
_OUTER = re.compile(r"(LEFT|RIGHT|FULL) JOIN")
# Spark's dynamic pruning makes some plans invalid, of plain statements too.
_SPARKS_PRUNING = "PLAN_VALIDATION_FAILED"
# Tiny queries: planning and compiling would be nearly all of their time.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def fuzz(spark):
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    yield from _with_database(session)


@pytest.fixture(scope="module")
def remote_fuzz(connect_server):
    with remote_session(connect_server.url, SETTINGS) as session:
        yield from _with_database(session)


def _with_database(session):
    session.sql("CREATE DATABASE IF NOT EXISTS fuzz")
    session.sql("USE fuzz")
    yield session
    session.sql("USE default")
    session.sql("DROP DATABASE fuzz CASCADE")


# Every second query: its keys go to data columns too, however little that saves.
PREDICATES = Settings.of({KEY_PREDICATE: "true"})


def test_three_answers(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(key_predicates, "MOST_ROWS_READ", 1.0)
    _ask(fuzz, tmp_path, QUERIES)


@pytest.mark.e2e
def test_three_answers_over_spark_connect(remote_fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(key_predicates, "MOST_ROWS_READ", 1.0)
    _ask(remote_fuzz, tmp_path, QUERIES // 4)


def _ask(session, tmp_path, queries):
    found = Findings()
    for number in range(queries):
        if number % PER_DATABASE == 0:
            setup(session, SEED + number)
        settings = PREDICATES if number % 2 else Settings.of()
        asked = query(SEED * 1_000_003 + number)
        found.ask(session, asked, UPath(tmp_path) / "1.json", settings)
    print(found.summary())
    assert found.wrong == []
    assert found.paths.total() > queries / 3
    assert found.eliminated > queries / 100
    assert found.unplanned <= queries / 50
    assert median(found.by_keys) == 1.0


class Findings:
    """What was seen so far."""

    def __init__(self) -> None:
        self.asked = 0
        self.failing = 0
        self.compared = 0
        self.wrong: list[str] = []
        self.eliminated = 0
        self.unplanned = 0
        self.paths: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.minimality: list[float] = []
        self.by_keys: list[float] = []

    def summary(self) -> str:
        """For people."""
        every = f"{median(self.minimality):.2f}" if self.minimality else "-"
        keys = f"{median(self.by_keys):.2f}" if self.by_keys else "-"
        return (
            f"{self.asked} queries ({self.failing} that plain Spark refuses too), "
            f"{len(self.wrong)} wrong; scans pruned {dict(self.paths)}; "
            f"left whole {dict(self.reasons)}; {self.eliminated} without some joins; "
            f"{self.unplanned} that Spark's own pruning breaks; "
            f"{self.compared} compared with listed partitions; "
            f"kept / contributing, median: {every}, of equality joins by keys only {keys}"
        )

    def ask(self, session, asked: Query, path: UPath, settings: Settings) -> None:
        """Compares the three results of one query."""
        self.asked += 1
        plain = _rows(session, asked.sql)
        if plain is None:
            self.failing += 1
            return
        report = prune(session, Request(asked.sql, settings=settings), path)
        descriptor = report.descriptor
        filters = descriptor.row_filters
        self.paths.update({"predicate": len(filters)} if filters else {})
        self.paths.update(target.path for target in descriptor.targets)
        pruned = {target.alias for target in descriptor.targets}
        self.reasons.update(
            found.reason for found in descriptor.decisions if found.alias not in pruned
        )
        targets = prelaunch(catalog_of(session), descriptor, {})
        if report.fewer_joins:
            self.eliminated += 1
            if _rows(session, report.fewer_joins.text) != plain:
                self.wrong.append(f"without joins: {asked.sql} AS {report.fewer_joins}")
        narrowed = restrict(asked.sql, targets, filters)
        rows = _rows(session, narrowed)
        if rows is None and _SPARKS_PRUNING in _failure(session, narrowed):
            self.unplanned += 1  # a run falls back to the plain statement
            return
        if rows != plain:
            self.wrong.append(asked.sql)
            return
        contributing = {scan.alias: _contributing(scan, plain) for scan in asked.scans}
        for target in targets:
            if target.alias in contributing:
                self._measure(asked, target, contributing[target.alias])
        if asked.scans and targets and not _OUTER.search(asked.sql):
            self.compared += 1
            listed = {scan.alias: _listed(scan, contributing[scan.alias]) for scan in asked.scans}
            if _rows(session, asked.literal(listed)) != plain:
                self.wrong.append(f"listed: {asked.sql}")

    def _measure(self, asked: Query, target: Target, contributing: set[tuple]) -> None:
        kept = {partition.values for partition in target.partitions}
        if not contributing <= kept:
            self.wrong.append(f"misses {contributing - kept}: {asked.sql}")
        if contributing:
            self.minimality.append(len(kept) / len(contributing))
            if asked.by_keys:
                self.by_keys.append(len(kept) / len(contributing))


def _failure(session, sql: str) -> str:
    """The error of a statement that fails."""
    with pytest.raises((PySparkException, Py4JJavaError)) as error:
        session.sql(sql).collect()
    return str(error.value)


def _rows(session, sql: str) -> list[tuple] | None:
    """The rows, sorted, or ``None`` where Spark refuses the statement."""
    try:
        return sorted(map(tuple, session.sql(sql).collect()), key=repr)
    except (PySparkException, Py4JJavaError):
        return None


def _contributing(scan: Scan, rows: list[tuple]) -> set[tuple]:
    """The partitions that the rows came from, as the metastore names them."""
    return {
        tuple(_text(row[position]) for position in scan.keys)
        for row in rows
        if row[scan.row_number] is not None
    }


def _text(value) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def _listed(scan: Scan, partitions: set[tuple]) -> str:
    """A condition for exactly these partitions."""
    columns = FACTS[scan.table][1]
    parts = [
        " AND ".join(
            _equal(name, kind, text)
            for (name, kind), text in zip(columns.items(), texts, strict=True)
        )
        for texts in sorted(partitions, key=repr)
    ]
    return " OR ".join(f"({part})" for part in parts) or "1 = 0"


def _equal(name: str, kind: str, text: str | None) -> str:
    if text is None:
        return f"{name} IS NULL"
    escaped = text.replace("'", "\\'")
    return f"{name} = CAST('{escaped}' AS {kind})"
