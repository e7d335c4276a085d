"""Compares Hive's rows for the goldens' statements with those of pruned runs on Spark.

``DIFFERENT`` lists all statements for which Spark returns other rows, with the cause.
docs/how-it-works/hive-differences.md describes them.
"""

from __future__ import annotations

import gzip
import hashlib
import json

import pytest
from upath import UPath

from airflow_hive_opt.statement.settings import Settings
from tests.hive.goldens.score import HERE, load
from tests.spark.stages import job_of, join, prune

RANDOM = "rand() gives other numbers"
DIFFERENT = {
    "probe_errors#67": RANDOM,
    "probe_errors#68": RANDOM,
}
_TYPES = {"int": int, "bigint": int, "double": float}


@pytest.fixture(scope="module")
def tables(spark):
    """The goldens' tables; ANSI off, since Hive gives NULL where a cast fails."""
    cases = load("cases.jsonl.gz")
    rows = json.loads(gzip.decompress((HERE / "rows.json.gz").read_bytes()))
    documents = {table["name"]: table for case in cases for table in case["tables"]}
    spark.sql("CREATE DATABASE hive_answers")
    spark.sql("USE hive_answers")
    for name, document in documents.items():
        columns = [*document["columns"], *document["partition_columns"]]
        typed = [
            tuple(
                None if text is None else _TYPES.get(type_, str)(text)
                for text, (_, type_) in zip(row, columns, strict=True)
            )
            for row in rows[name]
        ]
        schema = ", ".join(f"`{column}` {type_}" for column, type_ in columns)
        writer = spark.createDataFrame(typed, schema).coalesce(1).write
        if document["partition_columns"]:
            writer = writer.partitionBy(*[column for column, _ in document["partition_columns"]])
        writer.saveAsTable(name.removeprefix("default."))
    spark.conf.set("spark.sql.ansi.enabled", "false")
    # settings change Hive's plan, not its rows: once for each statement
    yield list({case["sql"]: case for case in cases if case["expected"].get("rows")}.values())
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.sql("USE default")
    spark.sql("DROP DATABASE hive_answers CASCADE")


@pytest.mark.slow
def test_pruned_runs_of_the_goldens_return_hives_rows(spark, tables, tmp_path):
    different = []
    for case in tables:
        settings = Settings.of({k: v for k, v in case["set"].items() if v is not None})
        job = job_of(case["sql"], settings=settings, show_rows=1_000_000)
        path = UPath(tmp_path) / "1.json"
        try:
            rows = join(spark, job, prune(spark, job, path), path).rows
        except Exception:  # noqa: BLE001 - a statement that Spark refuses differs, too
            rows = ((),)
        if digest(rows) != case["expected"]["rows"]["digest"]:
            different.append(case["id"])
    assert len(tables) > 200
    assert sorted(different) == sorted(DIFFERENT)


def digest(rows) -> str:
    lines = sorted("\t".join(map(text_of, row)) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def text_of(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)
