"""Something changes between local task and map join: the rows are those of plain Spark, or none.

``FUZZ_BETWEEN=1000 FUZZ_SEED=7`` says how many SELECTs, and from which seed on; half as many
statements write.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from tests.fuzz.handed_over import DATABASE, DAYS, ONCE, OTHER, Case, case, rows_of_keys
from tests.fuzz.test_fuzz import SETTINGS as QUICK
from tests.fuzz.test_sessions import shown
from tests.spark.handed_over import map_join_of

COUNT = int(os.environ.get("FUZZ_BETWEEN", "8"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
WRITTEN = (
    f"INSERT OVERWRITE TABLE {DATABASE}.written SELECT -1",
    f"INSERT OVERWRITE TABLE {DATABASE}.parts PARTITION (part) "
    "SELECT -2, part FROM VALUES ('x'), ('y') AS t (part)",
)


@pytest.fixture(scope="module", autouse=True)
def places(spark, tmp_path_factory):
    """The locations that the changes name."""
    quick(spark)
    for shift, name in enumerate((DATABASE, OTHER)):
        spark.sql(f"CREATE DATABASE {name}")
        for sql in ONCE:
            spark.sql(sql.format(db=name))
        spark.sql(f"INSERT INTO {name}.keys {rows_of_keys(shift)}")
        days = ", ".join(f"'{day}'" for day in DAYS)
        spark.sql(
            f"INSERT INTO {name}.fact PARTITION (p, ds) SELECT CAST(id + {100 * shift} AS INT), "
            f"CAST(id % 8 AS INT), array({days})[id % 5] FROM range(80)"
        )
    spark.sql(f"CREATE TABLE {DATABASE}.whole USING parquet AS SELECT * FROM {DATABASE}.fact")
    spark.sql(f"CREATE TABLE {DATABASE}.written (id INT) STORED AS PARQUET")
    spark.sql(
        f"CREATE TABLE {DATABASE}.parts (id INT) PARTITIONED BY (part STRING) STORED AS PARQUET"
    )
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    spark.range(3000, 3003).selectExpr("CAST(id AS INT) AS id").write.parquet(f"{elsewhere}/p")
    yield {
        "{keys}": location(spark, f"{DATABASE}.keys"),
        "{other_keys}": location(spark, f"{OTHER}.keys"),
        "{elsewhere}": f"file:{elsewhere}/p",
    }
    for name in (DATABASE, OTHER):
        spark.sql(f"DROP DATABASE {name} CASCADE")


def location(spark, table: str) -> str:
    told = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Location'").collect()
    return str(told[0]["data_type"])


def quick(session) -> None:
    for name, value in QUICK.items():
        session.conf.set(name, value)


def application(spark, statements=(), places=None):
    """A session in which the statements have run, but for those that no longer have a meaning."""
    made = spark.newSession()
    quick(made)
    made.sql(f"USE {DATABASE}")
    for sql in statements:
        text = sql
        for name, place in (places or {}).items():
            text = text.replace(name, place)
        with suppress(AnalysisException):
            made.sql(text)
    return made


@dataclass(frozen=True)
class Answer:
    """Spark's objection, or the rows; of a statement that writes, the tables afterwards."""

    objection: str | None
    rows: object


def tables(spark) -> object:
    reader = application(spark)
    return [
        sorted(map(shown, reader.table(f"{DATABASE}.{name}").collect()))
        for name in ("written", "parts")
    ]


def fresh(spark) -> object:
    """Empties the written tables but for their first rows."""
    application(spark, WRITTEN)
    return tables(spark)


def plainly(spark, asked: Case) -> Answer:
    """The statement as Spark runs it in the map join's application."""
    if asked.into:
        fresh(spark)
    objection, rows = None, None
    try:
        frame = application(spark, asked.here).sql(asked.into + asked.query)
        rows = sorted(map(shown, frame.collect()))
    except (PySparkException, Py4JJavaError) as error:
        objection = in_words(error)
    return Answer(objection, tables(spark) if asked.into else rows)


@pytest.mark.slow
@pytest.mark.parametrize("writes", [False, True])
def test_changes_between_the_tasks_give_the_map_joins_own_rows_or_a_refusal(
    spark, tmp_path, places, writes
):
    counts: Counter[str] = Counter()
    differing = []
    for number in range(SEED, SEED + (COUNT // 2 if writes else COUNT)):
        asked = case(Random(number), writes)
        application(spark, asked.made)
        wrong, outcome = difference(spark, asked, tmp_path / str(number), places)
        counts[outcome.status] += 1
        counts["pruned"] += bool(
            outcome.summary and outcome.summary["kept"] < outcome.summary["total"]
        )
        application(spark, asked.undone, places)
        if wrong:
            differing.append(f"seed {number}: {wrong}\n{asked}\n{outcome}")
            print(differing[-1], flush=True)
    print(f"\n{COUNT} from seed {SEED}, writes {writes}: {dict(counts)}, {len(differing)} differ")
    assert not differing, "\n\n".join(differing[:5])
    assert counts[Status.DONE] and counts["pruned"]


def difference(spark, asked: Case, folder, places) -> tuple[str | None, Outcome]:
    """How the map join differs from plain Spark."""
    first = Job(
        asked.into + asked.query, str(folder / "1.json"), Stages.LOCAL_TASK, show_rows=10_000
    )
    pruned = run_job(application(spark, asked.there), first)
    application(spark, asked.changed, places)
    before = fresh(spark) if asked.into else None
    if pruned.status is not Status.DONE:
        unplanned = plainly_there(spark, asked)
        return (None if unplanned else f"the local task: {pruned.message}"), pruned
    outcome = run_job(application(spark, asked.here), map_join_of(first, pruned))
    ours = tables(spark) if asked.into else sorted(outcome.rows)
    plain = plainly(spark, asked)
    if outcome.status is not Status.DONE:
        refused = outcome.status is Status.REFUSED and "in another session: " in outcome.message
        if not refused and plain.objection is None:
            return f"it failed: {outcome.message}", outcome
        untouched = not asked.into or ours in (before, plain.rows)
        return (None if untouched else f"it failed and wrote {ours}"), outcome
    if plain.objection is None and ours == plain.rows:
        return None, outcome
    if asked.added and plain.objection is None:
        application(spark, asked.undone, places)  # the list need not know the new partition
        plain = plainly(spark, asked)
        if ours == plain.rows:
            return None, outcome
    return f"plain: {plain}\nours: {ours}", outcome


def plainly_there(spark, asked: Case) -> str | None:
    """Spark's objection to the statement in the local task's application, before the change."""
    application(spark, asked.made)
    return plainly(spark, Case(**{**vars(asked), "here": asked.there})).objection
