"""Random queries, each in three ways: pruned, plain, and with its contributing partitions listed.

``make fuzz N=5000 SEED=7`` tests more of them, ``make fuzz-connect`` over Spark Connect.
"""

from __future__ import annotations

import re
from collections import Counter
from statistics import median

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.descriptor import Target
from airflow_hive_opt.documents.descriptor_text import descriptor_to_text
from airflow_hive_opt.restriction.restrict import restrict, ways_of
from airflow_hive_opt.spark.catalog.session_catalog import catalog_of
from airflow_hive_opt.spark.local_task import data_columns as key_predicates
from airflow_hive_opt.spark.map_join.execution import execute
from airflow_hive_opt.spark.map_join.prelaunch import prelaunch
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.statement.settings import Settings
from tests.fuzz.findings import SEED, Finding, case, count_of, differing, repeat, report
from tests.fuzz.generator import Query, Scan, query
from tests.fuzz.schema import FACTS, setup
from tests.spark.stages import job_of, prune

QUERIES = count_of("FUZZ_QUERIES", 100)
OVER_CONNECT = count_of("FUZZ_CONNECT", QUERIES // 4)
PER_DATABASE = 500
PROGRESS = 100
# Leaving out a partition that gave no row may make NULLs in its place.
_OUTER = re.compile(r"(LEFT|RIGHT|FULL) JOIN")
_ALL_ROWS = 1_000_000
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
PREDICATES = {"key_predicate": True}


@pytest.mark.slow
def test_pruned_plain_and_literal_list_queries_have_the_same_rows(fuzz, tmp_path, monkeypatch):
    monkeypatch.setattr(key_predicates, "MOST_ROWS_READ", 1.0)
    _ask(fuzz, tmp_path, QUERIES)


@pytest.mark.e2e
def test_pruned_plain_and_literal_list_queries_agree_over_spark_connect(
    remote_fuzz, tmp_path, monkeypatch
):
    monkeypatch.setattr(key_predicates, "MOST_ROWS_READ", 1.0)
    _ask(remote_fuzz, tmp_path, OVER_CONNECT)


@pytest.mark.slow
def test_a_finding_has_what_is_needed_to_repeat_it(fuzz, tmp_path, monkeypatch):
    """It has the seed, the settings, both statements and what differs in their rows."""
    module = "tests.fuzz.test_fuzz"
    for seed in (f"{module}.SEED", "tests.fuzz.findings.SEED"):
        monkeypatch.setattr(seed, 1)
    monkeypatch.setattr(f"{module}.restrict", lambda sql, *_: f"SELECT * FROM ({sql}) LIMIT 0")
    with pytest.raises(AssertionError) as raised:
        _ask(fuzz, tmp_path, 4)
    message = str(raised.value)
    for part in ("of FUZZ_SEED=1 FUZZ_QUERIES=4 differ", "query ", "key_predicate"):
        assert part in message
    for part in ("statement: SELECT", "pruned: SELECT * FROM (", "only here [", "ours: 0 rows"):
        assert part in message

    def failing(*_):
        raise RuntimeError("no such metastore")

    monkeypatch.setattr(f"{module}.prune", failing)
    with pytest.raises(RuntimeError) as raised:
        _ask(fuzz, tmp_path, 4)
    (note,) = raised.value.__notes__
    assert note.startswith("FUZZ_SEED=1, query ")
    assert "statement: " in note


def _ask(session, tmp_path, queries):
    found = Findings()
    for number in range(queries):
        if number % PER_DATABASE == 0:
            setup(session, SEED + number)
        switches = PREDICATES if number % 2 else {}
        asked = query(SEED * 1_000_003 + number)
        with case(f"query {number}", switches=switches, statement=asked.sql) as finding:
            path = UPath(tmp_path) / "1.json"
            found.ask(session, asked, path, Settings.of(switches=switches), finding)
        if number % PROGRESS == PROGRESS - 1:  # thousands of queries take hours
            print(f"{number + 1} of {queries}: {len(found.wrong)} wrong", *found.wrong, flush=True)
    counted = f"{repeat(FUZZ_QUERIES=queries)}: {found.summary()}"
    print(counted)
    assert not found.wrong, report(found.wrong, FUZZ_QUERIES=queries)
    assert found.paths.total() > queries / 3, counted
    assert found.eliminated > queries / 100, counted
    assert found.unplanned <= queries / 50, counted
    assert median(found.by_keys) == 1.0, counted


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
            f"{self.unplanned} whose pruned text Spark can't plan; "
            f"{self.compared} compared with listed partitions; "
            f"kept / contributing, median: {every}, of equality joins by keys only {keys}"
        )

    def ask(self, session, asked: Query, path: UPath, settings: Settings, finding: Finding) -> None:
        """Compares the three results of one query."""
        self.asked += 1
        plain = _rows(session, asked.sql)
        if isinstance(plain, str):
            self.failing += 1
            return
        pruned = prune(session, job_of(asked.sql, settings=settings), path)
        descriptor = pruned.descriptor
        filters = descriptor.row_filters
        self.paths.update({"predicate": len(filters)} if filters else {})
        self.paths.update(target.path for target in descriptor.targets)
        restricted = {target.scan for target in descriptor.targets}
        self.reasons.update(
            found.reason for found in descriptor.decisions if found.scan not in restricted
        )
        targets = prelaunch(catalog_of(session), descriptor, {})

        def differs(**how: object) -> None:
            self.wrong.append(finding(**how, descriptor=descriptor_to_text(descriptor)))

        if pruned.fewer_joins:
            self.eliminated += 1
            text = pruned.fewer_joins.text
            if (rows := _rows(session, text)) != plain:
                differs(without_joins=text, **differing(plain, rows))
        narrowed = restrict(asked.sql, targets, ways_of(targets, is_on_glue=False), filters)
        rows, objection = _restricted(session, narrowed, asked.sql)
        if objection and rows == plain:
            self.unplanned += 1  # the run fell back to the plain statement
            return
        if rows != plain:
            differs(pruned=narrowed, **differing(plain, rows))
            return
        contributing = {scan.alias: _contributing(scan, plain) for scan in asked.scans}
        for target in targets:
            if (alias := target.scan.alias) in contributing:
                missed = self._measure(asked, target, contributing[alias])
                if missed:
                    differs(pruned=narrowed, missed_partitions=missed)
        if asked.scans and targets and not _OUTER.search(asked.sql):
            self.compared += 1
            listed = {scan.alias: _listed(scan, contributing[scan.alias]) for scan in asked.scans}
            text = asked.literal(listed)
            if (rows := _rows(session, text)) != plain:
                differs(listed=text, **differing(plain, rows))

    def _measure(self, asked: Query, target: Target, contributing: set[tuple]) -> set[tuple]:
        """Counts what is kept; returns the partitions that are not, although they give rows."""
        kept = {partition.values for partition in target.partitions}
        if contributing:
            self.minimality.append(len(kept) / len(contributing))
            if asked.by_keys:
                self.by_keys.append(len(kept) / len(contributing))
        return contributing - kept


def _rows(session, sql: str) -> list[tuple] | str:
    """The rows, sorted, or what Spark says where it refuses the statement."""
    try:
        return sorted(map(tuple, session.sql(sql).collect()), key=repr)
    except (PySparkException, Py4JJavaError) as error:
        return str(error)


def _restricted(session, narrowed: str, sql: str) -> tuple[list[tuple] | str, str | None]:
    """The rows as a run finds them, and why Spark can't plan the restricted text."""
    try:
        answer = execute(session, (narrowed, sql), {}, _ALL_ROWS)
    except (PySparkException, Py4JJavaError) as error:
        return str(error), None
    return sorted(answer.rows, key=repr), answer.objection


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
