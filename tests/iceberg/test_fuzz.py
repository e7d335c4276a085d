"""Random queries and random changes of Iceberg tables, with keys and plain.

``make fuzz-iceberg N=1000 SEED=7`` tests more of them.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.statement.errors import PlanError
from tests.fuzz.generator import query
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.iceberg.changes import change
from tests.iceberg.runs import rows_of, run

SEED = int(os.environ.get("FUZZ_SEED", "1"))
QUERIES = int(os.environ.get("FUZZ_QUERIES", "40"))
WRITES = int(os.environ.get("FUZZ_WRITES", "30"))
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
        found = run(fuzz, sql, tmp_path)
        reasons.update(found.reasons.values())
        if found.rows != plain:
            wrong.append(sql)
    print(f"{QUERIES} queries, {failing} that plain Spark refuses, {len(wrong)} wrong: {reasons}")
    assert wrong == []
    assert reasons["RESTRICTED"] > QUERIES / 4


def test_changes(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), 0
    rng = random.Random(SEED)
    for number in range(WRITES):
        name = rng.choice(sorted(FACTS))
        mode = rng.choice(("copy-on-write", "merge-on-read"))
        for copy in ("plain", "ours"):
            _copy(fuzz, name, copy, mode)
        sql = change(rng, name, f"{name}_{{}}")
        failed = []
        for copy in ("plain", "ours"):
            text = sql.replace("{}", copy)
            try:
                if copy == "plain":
                    fuzz.sql(text)
                else:
                    reasons.update(run(fuzz, text, tmp_path).reasons.values())
            except _FAILURES as error:
                failed.append(_kind(error))
        failing += bool(failed)
        contents = [rows_of(fuzz, f"SELECT * FROM {name}_{copy}") for copy in ("plain", "ours")]
        if contents[0] != contents[1] or len(set(failed)) > 1 or len(failed) == 1:
            wrong.append((number, mode, sql, failed))
    print(f"{WRITES} changes, {failing} that plain Spark refuses, {len(wrong)} wrong: {reasons}")
    assert wrong == []
    assert reasons["RESTRICTED"] > WRITES / 5
    assert failing < WRITES / 4


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


def _kind(error: Exception) -> str:
    """What is wrong, by Spark's name for it."""
    text = str(error)
    return "CARDINALITY" if "CARDINALITY" in text else "refused"
