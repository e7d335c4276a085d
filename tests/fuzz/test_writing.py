"""Random statements that write: afterwards the tables are what plain Spark makes of them.

``FUZZ_WRITES=1000 FUZZ_SEED=7`` says how many, and from which seed on, ``FUZZ_CONNECT`` how many
over Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.job import Job, Outcome, Stages, Status
from airflow_hive_opt.spark.application.run import run_job
from airflow_hive_opt.spark.session.connect import remote_session
from airflow_hive_opt.spark.session.session_conf import conf_set
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.fuzz.writing import SOURCE, Write, write
from tests.spark.handed_over import map_join_of

COUNT = count_of("FUZZ_WRITES", 8)
OVER_CONNECT = count_of("FUZZ_CONNECT", COUNT)
OURS, PLAIN = "fuzz_ours", "fuzz_plain"
Opened = Callable[[Mapping[str, str]], AbstractContextManager]
"""Opens a session with these settings, for a block."""


@pytest.mark.slow
def test_random_writes_leave_the_tables_that_plain_spark_leaves(spark, tmp_path):
    @contextmanager
    def opened(settings: Mapping[str, str]) -> Iterator:
        made = spark.newSession()
        for name, value in settings.items():
            made.conf.set(name, value)
        yield made

    with sources(spark):
        compare(spark, opened, tmp_path, COUNT)


@pytest.mark.e2e
def test_random_writes_over_spark_connect_leave_the_tables_that_plain_spark_leaves(
    connect_server, tmp_path
):
    def opened(settings: Mapping[str, str]) -> AbstractContextManager:
        return remote_session(connect_server.url, settings)

    with opened({}) as remote, sources(remote):
        compare(remote, opened, tmp_path, OVER_CONNECT)


@contextmanager
def sources(spark) -> Iterator[None]:
    """The tables that the statements read."""
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


def compare(spark, opened: Opened, path: Path, count: int) -> None:
    """Runs ``count`` statements plainly and by the package, on tables of their own."""
    differing = []
    done = 0
    for number in range(SEED, SEED + count):
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
            theirs = plainly(opened, made)
            ours = by_us(opened, made, path / str(number), both)
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
    counted = f"{count} statements, {repeat()}: {done} write, {len(differing)} differ"
    print(f"\n{counted}")
    assert done >= count // 3, counted
    assert not differing, report(differing, FUZZ_WRITES=count, FUZZ_CONNECT=count)


def make(spark, database: str, case: Write) -> None:
    spark.sql(f"DROP DATABASE IF EXISTS {database} CASCADE")
    spark.sql(f"CREATE DATABASE {database}")
    with conf_set(spark, {"spark.sql.storeAssignmentPolicy": "LEGACY"}):
        for sql in case.before:
            with suppress(PySparkException, Py4JJavaError):  # a value that the table does not take
                spark.sql(sql.replace("{db}", database))


def plainly(opened: Opened, case: Write) -> str | None:
    """What Spark says against it; ``None`` where it did it."""
    try:
        with opened(case.settings) as session:
            session.sql(case.sql.replace("{db}", PLAIN))
    except (PySparkException, Py4JJavaError) as error:
        return in_words(error)
    return None


def by_us(opened: Opened, case: Write, folder: Path, both: bool) -> Outcome:
    sql = case.sql.replace("{db}", OURS)
    stages = Stages.BOTH if both else Stages.LOCAL_TASK
    first = Job(sql, str(folder / "1.json"), stages)
    with opened(case.settings) as session:
        outcome = run_job(session, first)
    if both or outcome.status is not Status.DONE:
        return outcome
    with opened(case.settings) as session:
        return run_job(session, map_join_of(first, outcome))


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
