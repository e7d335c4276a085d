"""Random queries and random changes of Hudi tables, with keys and plain.

``make fuzz-hudi-3.5 N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.settings import Settings
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.fuzz.generator import query
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.lakes.changes import change
from tests.lakes.runs import rows_of, run

QUERIES = count_of("FUZZ_QUERIES", 40)
WRITES = count_of("FUZZ_WRITES", 10)
# Tiny statements: planning and compiling would be nearly all of their time.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Their metastore entries would be written with every commit.
TABLE = "primaryKey = 'id', 'hoodie.datasource.hive_sync.enable' = 'false'"
_FAILURES = (PySparkException, Py4JJavaError, PlanError)
BY_VALUE = Settings.of(switches={"key_predicate": True})


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Hudi's, by their partition columns."""
    session = lake.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    for kind in ("insert", "upsert", "delete", "bulkinsert"):
        session.conf.set(f"hoodie.{kind}.shuffle.parallelism", "1")
    session.sql("CREATE DATABASE made")
    session.sql("USE made")
    setup(session, SEED)
    session.sql("CREATE DATABASE fuzz")
    for number, name in enumerate(FACTS):
        _create(session, name, f"fuzz.{name}", "mor" if number % 2 else "cow")
    for name in DIMENSIONS:
        session.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM made.{name}")
    session.sql("USE fuzz")
    yield session
    session.sql("USE default")
    session.sql("DROP DATABASE made CASCADE")
    session.sql("DROP DATABASE fuzz CASCADE")


def _create(session, name: str, table: str, type_: str) -> None:
    columns = ", ".join(f"{each} {kind}" for part in FACTS[name] for each, kind in part.items())
    session.sql(f"DROP TABLE IF EXISTS {table}")
    session.sql(
        f"CREATE TABLE {table} ({columns}) USING hudi PARTITIONED BY ({', '.join(FACTS[name][1])}) "
        f"TBLPROPERTIES (type = '{type_}', {TABLE})"
    )
    session.sql(f"INSERT INTO {table} SELECT * FROM made.{name}")


def test_queries(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), 0
    for number in range(QUERIES):
        sql = query(SEED * 1_000_003 + number).sql
        try:
            plain = rows_of(fuzz, sql)
        except _FAILURES:
            failing += 1
            continue
        settings = {"settings": BY_VALUE} if number % 2 else {}
        with case(f"query {number}", statement=sql) as finding:
            found = run(fuzz, sql, tmp_path, **settings)
        reasons.update(found.reasons.values())
        if found.rows != plain:
            said = {"ran": found.statement, "values": found.values, "reasons": found.reasons}
            wrong.append(finding(**said, **differing(plain, found.rows)))
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {failing} that plain Spark refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert reasons["RESTRICTED"] > QUERIES / 5, counted


def test_changes(fuzz, tmp_path):
    """Statements that Hudi refuses must be refused with keys too."""
    wrong, reasons, failing = [], Counter(), 0
    rng = random.Random(SEED)
    for number in range(WRITES):
        name = rng.choice(sorted(FACTS))
        type_ = rng.choice(("cow", "mor"))
        for copy in ("plain", "ours"):
            _create(fuzz, name, f"fuzz.{name}_{copy}", type_)
        sql = change(rng, name, f"{name}_{{}}")
        failed: dict[str, str] = {}
        ran = None
        with case(f"change {number}, {type_}", statement=sql) as finding:
            for copy in ("plain", "ours"):
                text = sql.replace("{}", copy)
                try:
                    if copy == "plain":
                        fuzz.sql(text)
                    else:
                        found = run(fuzz, text, tmp_path)
                        ran = found.statement
                        reasons.update(found.reasons.values())
                except _FAILURES as error:
                    failed[copy] = str(error)
            listed = ", ".join(each for part in FACTS[name] for each in part)
            contents = [
                rows_of(fuzz, f"SELECT {listed} FROM {name}_{copy}") for copy in ("plain", "ours")
            ]
        failing += bool(failed)
        if contents[0] != contents[1] or len(failed) == 1:
            wrong.append(finding(ran=ran, failed=failed, **differing(*contents)))
    counted = f"{repeat(FUZZ_WRITES=WRITES)}: {failing} that Hudi refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_WRITES=WRITES)
