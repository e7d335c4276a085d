"""Random queries and random changes of Iceberg tables, with keys and plain.

``make fuzz-iceberg-3.5 N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.statement.errors import PlanError
from tests.fuzz.findings import SEED, case, count_of, differing, repeat, report
from tests.fuzz.generator import query
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.lakes.changes import change
from tests.lakes.runs import rows_of, run

QUERIES = count_of("FUZZ_QUERIES", 40)
WRITES = count_of("FUZZ_WRITES", 30)
# Tiny statements: planning and compiling would be nearly all of their time.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_FAILURES = (PySparkException, Py4JJavaError, PlanError)


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Iceberg's, by the values of their columns."""
    session = lake.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    session.sql("CREATE DATABASE made")
    session.sql("USE made")
    setup(session, SEED)
    session.sql("CREATE NAMESPACE lake.fuzz")
    for name, (_, partitions) in FACTS.items():
        layout = ", ".join(partitions)
        session.sql(
            f"CREATE TABLE lake.fuzz.{name} USING iceberg PARTITIONED BY ({layout}) "
            f"AS SELECT * FROM {name}"
        )
    for number, name in enumerate(DIMENSIONS):  # some as Iceberg tables, some as views
        kind = "TABLE lake.fuzz." if number % 2 else "TEMPORARY VIEW "
        using = (
            f"USING iceberg PARTITIONED BY ({next(iter(DIMENSIONS[name]))})" if number % 2 else ""
        )
        session.sql(f"CREATE {kind}{name} {using} AS SELECT * FROM spark_catalog.made.{name}")
    session.sql("USE lake.fuzz")
    yield session
    session.sql("USE spark_catalog.default")
    session.sql("DROP DATABASE made CASCADE")


def test_queries(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), 0
    for number in range(QUERIES):
        sql = query(SEED * 1_000_003 + number).sql
        try:
            plain = rows_of(fuzz, sql)
        except _FAILURES:
            failing += 1
            continue
        with case(f"query {number}", statement=sql) as finding:
            found = run(fuzz, sql, tmp_path)
        reasons.update(found.reasons.values())
        if found.rows != plain:
            said = {"ran": found.statement, "values": found.values, "reasons": found.reasons}
            wrong.append(finding(**said, **differing(plain, found.rows)))
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {failing} that plain Spark refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert reasons["RESTRICTED"] > QUERIES / 4, counted


def test_changes(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), 0
    rng = random.Random(SEED)
    for number in range(WRITES):
        name = rng.choice(sorted(FACTS))
        mode = rng.choice(("copy-on-write", "merge-on-read"))
        for copy in ("plain", "ours"):
            _copy(fuzz, name, copy, mode)
        sql = change(rng, name, f"{name}_{{}}")
        failed: dict[str, str] = {}
        ran = None
        with case(f"change {number}, {mode}", statement=sql) as finding:
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
            contents = [rows_of(fuzz, f"SELECT * FROM {name}_{copy}") for copy in ("plain", "ours")]
        failing += bool(failed)
        kinds = set(map(_kind, failed.values()))
        if contents[0] != contents[1] or len(kinds) > 1 or len(failed) == 1:
            wrong.append(finding(ran=ran, failed=failed, **differing(*contents)))
    counted = f"{repeat(FUZZ_WRITES=WRITES)}: {failing} that plain Spark refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_WRITES=WRITES)
    assert reasons["RESTRICTED"] > WRITES / 5, counted
    assert failing < WRITES / 4, counted


def _copy(session, name: str, copy: str, mode: str) -> None:
    session.sql(f"DROP TABLE IF EXISTS lake.fuzz.{name}_{copy}")
    layout = ", ".join(FACTS[name][1])
    properties = ", ".join(
        f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete")
    )
    session.sql(
        f"CREATE TABLE lake.fuzz.{name}_{copy} USING iceberg PARTITIONED BY ({layout}) "
        f"TBLPROPERTIES ('format-version' = '2', {properties}) AS SELECT * FROM lake.fuzz.{name}"
    )


def _kind(text: str) -> str:
    """What is wrong, by Spark's name for it."""
    return "CARDINALITY" if "CARDINALITY" in text else "refused"
