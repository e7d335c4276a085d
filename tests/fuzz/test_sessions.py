"""Random statements whose keys depend on the session: another session gets no other rows.

``FUZZ_SESSIONS=1000 FUZZ_SEED=7`` says how many, and from which seed on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.fuzz.sessions import DATABASE, DATABASES, OF_VIEWS, TABLES, Case
from tests.fuzz.sessions import case as random_case
from tests.fuzz.test_fuzz import SETTINGS as QUICK
from tests.fuzz.test_writing import OURS, PLAIN, make, state
from tests.fuzz.writing import Write
from tests.spark.handed_over import map_join_of

COUNT = count_of("FUZZ_SESSIONS", 8)
WRITTEN = Write(
    (
        "CREATE TABLE {db}.t (id INT, p INT, ds STRING) PARTITIONED BY (day DATE) STORED AS ORC",
        "INSERT INTO {db}.t VALUES (-1, 0, 'before', DATE'2026-01-03')",
    ),
    "",
    {},
    ("t", "made"),
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark):
    for shift, name in enumerate(DATABASES):
        spark.sql(f"CREATE DATABASE {name}")
        maker = session(spark, {DATABASE: name, **OF_VIEWS})
        for sql in TABLES:
            maker.sql(sql.replace("{db}", name).replace("{shift}", str(shift)))
    yield
    for name in (*DATABASES, OURS, PLAIN):
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


@dataclass(frozen=True)
class Run:
    """What became of a statement: Spark's objection, and the rows or the tables afterwards."""

    objection: str | None
    found: object
    at_work: bool = False
    """Whether Spark objects to a row, not to the statement."""


@pytest.mark.slow
def test_another_session_gets_its_own_rows_or_a_refusal(spark, tmp_path):
    counts: Counter[str] = Counter()
    differing = []
    for number in range(SEED, SEED + COUNT):
        rng = Random(number)
        asked = random_case(rng)
        both = not asked.differing and rng.random() < 0.5
        form = "whole" if both else "unlike" if asked.differing else "alike"
        with case(
            f"statement {number}, {form}",
            local_task=asked.there,
            map_join=asked.here,
            statement=f"{asked.head}{asked.into}{asked.query}",
        ) as finding:
            if asked.into:
                for name in (OURS, PLAIN):
                    make(spark, name, WRITTEN)
            plain = plainly(spark, asked)
            outcome, ours = by_us(spark, asked, tmp_path / str(number), both)
            wrong = difference(spark, asked, outcome, ours, plain)
            if wrong is None and outcome.status is Status.DONE and plain.objection is None:
                wrong = too_many(asked, outcome, plain, counts)
        counts[f"{form}: {outcome.status}"] += 1
        counts["error in an unread row"] += (
            outcome.status is Status.DONE and plain.objection is not None
        )
        if wrong:
            said = {"wrong": wrong, "plain": plain, "ours": f"{outcome.status}: {outcome.message}"}
            differing.append(finding(**said, ran=outcome.statement, found_by_ours=ours))
            print(differing[-1], flush=True)
    counted = f"{COUNT} statements, {repeat()}: {dict(counts)}, {len(differing)} differ"
    print(f"\n{counted}")
    assert not differing, report(differing, FUZZ_SESSIONS=COUNT)
    assert counts["pruned"] > COUNT // 4, counted


def session(spark, settings: dict[str, str]):
    made = spark.newSession()
    for name, value in {**QUICK, **settings}.items():
        if name == DATABASE:
            made.sql(f"USE {value}")
        else:
            made.conf.set(name, value)
    return made


def plainly(spark, asked: Case) -> Run:
    """The statement as Spark runs it in the map join's session."""
    objection, found, at_work = None, None, False
    try:
        frame = session(spark, asked.here).sql(asked.into.replace("{db}", PLAIN) + asked.query)
        found = sorted(map(shown, frame.collect()))
    except (PySparkException, Py4JJavaError) as error:
        objection, at_work = in_words(error), not isinstance(error, AnalysisException)
    return Run(objection, state(spark, PLAIN, WRITTEN) if asked.into else found, at_work)


def shown(row) -> tuple[str, ...]:
    return tuple("NULL" if value is None else str(value) for value in row)


def by_us(spark, asked: Case, folder: Path, both: bool) -> tuple[Outcome, object]:
    """The last outcome, and the rows or the tables afterwards."""
    sql = asked.head + asked.into.replace("{db}", OURS) + asked.query
    stages = Stages.BOTH if both else Stages.LOCAL_TASK
    first = Job(sql, str(folder / "1.json"), stages, show_rows=10_000)
    outcome = run_job(session(spark, asked.there), first)
    if not both and outcome.status is Status.DONE:
        outcome = run_job(session(spark, asked.here), map_join_of(first, outcome))
    return outcome, state(spark, OURS, WRITTEN) if asked.into else sorted(outcome.rows)


def difference(spark, asked: Case, outcome: Outcome, ours: object, plain: Run) -> str | None:
    """How the outcome differs from what plain Spark does with the statement.

    An error in a row that is not read is not raised. This is documented.
    """
    if outcome.status is Status.DONE:
        if plain.objection:
            unread = plain.at_work and any(
                fact.get("kept", 0) < fact.get("total", 0) for fact in outcome.summary["decisions"]
            )
            return None if unread else "plain Spark refuses it"
        return None if ours == plain.found else "other rows"
    if asked.into:
        make(spark, PLAIN, WRITTEN)
        if ours not in (plain.found, state(spark, PLAIN, WRITTEN)):
            return "it has failed and left other rows"
    named = any(name in outcome.message for name in asked.differing)
    if plain.objection or (named and outcome.status is Status.REFUSED):
        return None
    if outcome.summary is None and refused_there(spark, asked):
        return None
    return "it is not done"


def refused_there(spark, asked: Case) -> bool:
    """Whether Spark can't make sense of the query in the local task's session."""
    try:
        session(spark, asked.there).sql(asked.query)
    except PySparkException:
        return True
    return False


def too_many(asked: Case, outcome: Outcome, plain: Run, counts: Counter[str]) -> str | None:
    """A list that has more than the partitions that the rows come from."""
    for fact in outcome.summary["decisions"]:
        if "kept" not in fact:
            counts[fact["reason"]] += 1
            continue
        counts["pruned"] += 1
        if asked.scans and not asked.into and plain.found:  # none may be for want of small rows
            counts["exact"] += 1
            wanted = {row[1:] for row in plain.found if row[0] != "NULL"}
            if fact["kept"] != len(wanted):
                return f"{fact['kept']} partitions where {len(wanted)} give rows"
    return None
