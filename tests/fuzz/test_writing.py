"""Random statements that write: afterwards the tables are what plain Spark makes of them.

``FUZZ_WRITES=1000 FUZZ_SEED=7`` says how many, and from which seed on.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.fuzz.writing import SOURCE, Write, write
from tests.spark.handed_over import map_join_of

COUNT = count_of("FUZZ_WRITES", 8)
OURS, PLAIN = "fuzz_ours", "fuzz_plain"


@pytest.fixture(scope="module", autouse=True)
def sources(spark):
    spark.sql(f"CREATE DATABASE {SOURCE}")
    spark.sql(f"CREATE TABLE {SOURCE}.fact (id INT) PARTITIONED BY (p INT) STORED AS PARQUET")
    spark.sql(
        f"INSERT INTO {SOURCE}.fact SELECT CAST(id AS INT), CAST(id % 6 AS INT) FROM range(12)"
    )
    spark.sql(
        f"CREATE TABLE {SOURCE}.keys USING parquet AS "
        "SELECT CAST(id AS INT) AS id, CAST(id + 1 AS INT) AS p FROM range(3)"
    )
    yield
    for name in (SOURCE, OURS, PLAIN):
        spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


@pytest.mark.slow
def test_random_writes_leave_the_tables_that_plain_spark_leaves(spark, tmp_path):
    differing = []
    done = 0
    for number in range(SEED, SEED + COUNT):
        rng = Random(number)
        made = write(rng)
        both = rng.random() < 0.7
        with case(
            f"statement {number}, {'one application' if both else 'two'}",
            settings=made.settings,
            statements=";\n".join((*made.before, made.sql)),
        ) as finding:
            for name in (OURS, PLAIN):
                make(spark, name, made)
            before = state(spark, OURS, made)
            assert before == state(spark, PLAIN, made)
            theirs = plainly(spark, made)
            ours = by_us(spark, made, tmp_path / str(number), both)
            after, plain = state(spark, OURS, made), state(spark, PLAIN, made)
        done += theirs is None
        allowed = (plain,) if theirs is None else (plain, before)
        if (theirs is None) != (ours.status is Status.DONE) or after not in allowed:
            said = {
                "plain": theirs,
                "ours": f"{ours.status}: {ours.message}",
                "ran": ours.statement,
            }
            differing.append(finding(**said, before=before, after_plain=plain, after_ours=after))
            print(differing[-1], flush=True)
    counted = f"{COUNT} statements, {repeat()}: {done} write, {len(differing)} differ"
    print(f"\n{counted}")
    assert done >= COUNT // 3, counted
    assert not differing, report(differing, FUZZ_WRITES=COUNT)


def make(spark, database: str, case: Write) -> None:
    spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    spark.sql(f"CREATE DATABASE {database}")
    for sql in case.before:
        with suppress(PySparkException, Py4JJavaError):  # a value that the table does not take
            session(spark, {"spark.sql.storeAssignmentPolicy": "LEGACY"}).sql(
                sql.replace("{db}", database)
            )


def session(spark, settings: dict[str, str]):
    made = spark.newSession()
    for name, value in settings.items():
        made.conf.set(name, value)
    return made


def plainly(spark, case: Write) -> str | None:
    """What Spark says against it; ``None`` where it did it."""
    try:
        session(spark, case.settings).sql(case.sql.replace("{db}", PLAIN))
    except (PySparkException, Py4JJavaError) as error:
        return in_words(error)
    return None


def by_us(spark, case: Write, folder: Path, both: bool) -> Outcome:
    sql = case.sql.replace("{db}", OURS)
    stages = Stages.BOTH if both else Stages.LOCAL_TASK
    first = Job(sql, str(folder / "1.json"), stages)
    outcome = run_job(session(spark, case.settings), first)
    if both or outcome.status is not Status.DONE:
        return outcome
    return run_job(session(spark, case.settings), map_join_of(first, outcome))


def state(spark, database: str, case: Write) -> dict[str, object]:
    """By table: rows byte by byte, partitions, folders with files, and what ought to be gone."""
    found: dict[str, object] = {}
    for name in case.tables:
        table = f"{database}.{name}"
        if not spark.catalog.tableExists(table):
            found[name] = None
            continue
        spark.sql(f"REFRESH TABLE {table}")
        frame = spark.table(table)
        shown = [
            f"hex(CAST({field.name} AS BINARY))"
            if field.dataType.typeName() in ("string", "binary", "varchar", "char")
            else f"CAST({field.name} AS STRING)"
            for field in frame.schema.fields
        ]
        try:
            rows = sorted(map(tuple, frame.selectExpr(*shown).collect()), key=repr)
        except (PySparkException, Py4JJavaError) as error:  # an int partition of Hive's NULL name
            rows = [re.sub(r"\d+", "0", in_words(error).partition("\n\\tat")[0])]  # without ids
        described = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Location'")
        folder = Path(described.collect()[0]["data_type"].removeprefix("file:"))
        partitions: list[str] = []
        if "# Partition Information" in {r[0] for r in spark.sql(f"DESCRIBE {table}").collect()}:
            partitions = [row[0] for row in spark.sql(f"SHOW PARTITIONS {table}").collect()]
        found[name] = (frame.dtypes, rows, partitions, *folders(folder))
    return found


def folders(root: Path) -> tuple[list[str], list[str]]:
    """The folders that have data files, and hidden folders that some writer left behind."""
    names = [path.relative_to(root) for path in root.rglob("*")] if root.exists() else []
    data = {str(n.parent) for n in names if (root / n).is_file() and n.name[0] not in "._"}
    left = {str(n) for n in names if (root / n).is_dir() and n.name[0] in "._"}
    return sorted(data), sorted(left)
