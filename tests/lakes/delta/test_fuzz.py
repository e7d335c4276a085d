"""Random queries and random changes of Delta tables, with keys and plain.

``make fuzz-delta-3.5 N=1000 SEED=7`` tests more of them.
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
from tests.lakes.delta.databases import drop_database
from tests.lakes.runs import rows_of, run

QUERIES = count_of("FUZZ_QUERIES", 40)
WRITES = count_of("FUZZ_WRITES", 30)
ANY_COLUMN = Settings.of(switches={"key_predicate": True})
LAYOUTS = {
    "partitions": ("PARTITIONED BY ({})", {}),
    "deletion vectors": ("PARTITIONED BY ({})", {"delta.enableDeletionVectors": "true"}),
    "column mapping": ("PARTITIONED BY ({})", {"delta.columnMapping.mode": "name"}),
    "clustering": ("CLUSTER BY ({})", {}),
}
_FAILURES = (PySparkException, Py4JJavaError, PlanError)
_REFUSED = "DELTA_UNSUPPORTED_SUBQUERY"


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Delta's, half of them clustered."""
    session = lake.newSession()
    session.sql("CREATE DATABASE made")
    session.sql("USE made")
    setup(session, SEED)
    session.sql("CREATE DATABASE fuzz")
    for number, name in enumerate(FACTS):
        layout = ("partitions", "clustering")[number % 2]
        _create(session, f"fuzz.{name}", layout, name, f"made.{name}")
    for number, name in enumerate(DIMENSIONS):  # some as Delta tables, some as views
        kind = "TABLE fuzz." if number % 2 else "TEMPORARY VIEW "
        using = f"USING delta PARTITIONED BY ({next(iter(DIMENSIONS[name]))})" if number % 2 else ""
        session.sql(f"CREATE {kind}{name} {using} AS SELECT * FROM made.{name}")
    session.sql("USE fuzz")
    yield session
    session.sql("USE default")
    for name in ("made", "fuzz"):
        drop_database(session, name)


def test_queries(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), 0
    rng = random.Random(SEED)
    for number in range(QUERIES):
        sql = query(SEED * 1_000_003 + number).sql
        options = {"settings": ANY_COLUMN} if rng.random() < 0.5 else {}
        try:
            plain = rows_of(fuzz, sql)
        except _FAILURES:
            failing += 1
            continue
        with case(f"query {number}", statement=sql) as finding:
            found = run(fuzz, sql, tmp_path, **options)
        reasons.update(found.reasons.values())
        if found.rows != plain:
            said = {"ran": found.statement, "values": found.values, "reasons": found.reasons}
            wrong.append(finding(**said, **differing(plain, found.rows)))
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {failing} that plain Spark refuses, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert reasons["RESTRICTED"] > QUERIES / 4, counted


def test_changes(fuzz, tmp_path):
    wrong, reasons, failing = [], Counter(), Counter()
    rng = random.Random(SEED)
    for number in range(WRITES):
        name, layout = rng.choice(sorted(FACTS)), rng.choice(sorted(LAYOUTS))
        options = {"settings": ANY_COLUMN} if rng.random() < 0.5 else {}
        for copy in ("plain", "ours"):
            _create(fuzz, f"fuzz.{name}_{copy}", layout, name, f"fuzz.{name}")
        sql = change(rng, name, f"{name}_{{}}")
        while not sql.startswith("MERGE") and rng.random() < 0.9:  # Delta refuses the others
            sql = change(rng, name, f"{name}_{{}}")
        failed: dict[str, str] = {}
        ran = None
        with case(f"change {number}, {layout}", statement=sql) as finding:
            for copy in ("plain", "ours"):
                text = sql.replace("{}", copy)
                try:
                    if copy == "plain":
                        fuzz.sql(text)
                    else:
                        found = run(fuzz, text, tmp_path, **options)
                        ran = found.statement
                        reasons.update(found.reasons.values())
                except _FAILURES as error:
                    failed[copy] = str(error)
            contents = [rows_of(fuzz, f"SELECT * FROM {name}_{copy}") for copy in ("plain", "ours")]
        kinds = set(map(_kind, failed.values()))
        failing.update(kinds)
        if contents[0] != contents[1] or len(kinds) > 1 or len(failed) == 1:
            wrong.append(finding(ran=ran, failed=failed, **differing(*contents)))
    counted = f"{repeat(FUZZ_WRITES=WRITES)}: plain Delta refuses {dict(failing)}, {reasons}"
    print(f"{counted}, {len(wrong)} wrong")
    assert not wrong, report(wrong, FUZZ_WRITES=WRITES)
    assert reasons["RESTRICTED"] > WRITES / 5, counted
    assert sum(failing.values()) < WRITES / 3, counted


def _create(session, table: str, layout: str, fact: str, rows: str) -> None:
    """A table in the layout, with a file for each key of its first partition column."""
    clause, properties = LAYOUTS[layout]
    data, partitions = FACTS[fact]
    columns = ", ".join(f"{name} {type_}" for name, type_ in {**data, **partitions}.items())
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    session.sql(f"DROP TABLE IF EXISTS {table}")
    by = [name for name, type_ in partitions.items() if type_ != "boolean" or "PART" in clause]
    session.sql(
        f"CREATE TABLE {table} ({columns}) USING delta {clause.format(', '.join(by))} "
        + (f"TBLPROPERTIES ({listed})" if listed else "")
    )
    spread = f"/*+ REPARTITION(5, {next(iter(partitions))}) */" if layout == "clustering" else ""
    session.sql(f"INSERT INTO {table} SELECT {spread} * FROM {rows}")


def _kind(text: str) -> str:
    """What is wrong, by the name of the condition."""
    for name in (_REFUSED, "DELTA_MULTIPLE_SOURCE_ROW_MATCHING"):
        if name in text:
            return name
    return "refused"
