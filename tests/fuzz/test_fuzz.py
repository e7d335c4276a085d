"""Random queries: the pruned answer is the plain one. ``make fuzz N=5000`` asks more of them."""

from __future__ import annotations

import os

import pytest
from upath import UPath

from airflow_hive_opt.spark.application import Request, prune
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.map_join import prelaunch, run_map_join
from tests.fuzz.generator import query, setup

SEED = int(os.environ.get("FUZZ_SEED", "1"))
QUERIES = int(os.environ.get("FUZZ_QUERIES", "120"))
PER_DATABASE = 500


@pytest.fixture(scope="module")
def database(spark):
    spark.sql("CREATE DATABASE IF NOT EXISTS fuzz")
    spark.sql("USE fuzz")
    yield
    spark.sql("USE default")
    spark.sql("DROP DATABASE fuzz CASCADE")


def test_pruned_is_plain(spark, database, tmp_path):
    pruned, kept, total, wrong = 0, 0, 0, []
    for number in range(QUERIES):
        if number % PER_DATABASE == 0:
            setup(spark, SEED + number)
        sql = query(SEED * 1_000_003 + number)
        descriptor = prune(spark, Request(sql), UPath(tmp_path) / "1.json").descriptor
        if not descriptor.targets:
            continue
        pruned += 1
        kept += descriptor.kept
        total += descriptor.total
        targets = prelaunch(SparkCatalog(spark), descriptor)
        frame, objection = run_map_join(spark, sql, targets, {})
        assert objection is None
        rows = sorted(map(repr, frame.collect()))
        if rows != sorted(map(repr, spark.sql(sql).collect())):
            wrong.append(sql)
    print(f"{QUERIES} queries, {pruned} pruned, kept {kept} of {total} partitions")
    assert wrong == []
    assert pruned > QUERIES / 4
    assert kept < total
