"""Random key queries on random tables: the worker's keys have all of Spark's.

``FUZZ_QUERIES=3000 FUZZ_SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from upath import UPath

from airflow_hive_opt.documents.job import KeyBounds
from airflow_hive_opt.pruning.decisions import Layer
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.keys import skeleton
from airflow_hive_opt.spark.keys.key_query import collect_keys
from airflow_hive_opt.worker.key_query import collect
from airflow_hive_opt.worker.partition_names import fulfilling
from airflow_hive_opt.worker.tables import Tables
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.fuzz.test_fuzz import SETTINGS
from tests.worker.fuzzed_queries import Generator, kind_of
from tests.worker.fuzzed_tables import ODD, Maker, random_partitions
from tests.worker.small_tables import BOUNDS, key_source, keys_of

QUERIES = count_of("FUZZ_QUERIES", 60)
PER_TABLES = 150
FAILURES = (PySparkException, Py4JJavaError)
_ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia")


@pytest.fixture(scope="module")
def session(spark):
    session = spark.newSession()
    for name, value in {**SETTINGS, "spark.sql.crossJoin.enabled": "true"}.items():
        session.conf.set(name, value)
    session.sql("CREATE DATABASE IF NOT EXISTS worker_fuzz")
    session.sql("USE worker_fuzz")
    yield session
    session.sql("USE default")
    session.sql("DROP DATABASE worker_fuzz CASCADE")


@pytest.mark.slow
def test_the_workers_keys_of_random_queries_include_sparks(session, tmp_path):
    seen: Counter[str] = Counter()
    why: Counter[str] = Counter()
    wrong = []
    for number in range(QUERIES):
        rng = random.Random(SEED * 1_000_003 + number)
        if number % PER_TABLES == 0:
            maker = _tables(session, tmp_path, number, rng)
        types = {
            name: {column.name: column.type for column in table.all_columns}
            for name, table in maker.known.tables.items()
        }
        sql, columns = Generator(rng, types).query()
        session.conf.set("spark.sql.ansi.enabled", str(rng.random() < 0.5).lower())
        session.conf.set("spark.sql.session.timeZone", rng.choice(_ZONES))
        with case(f"query {number}", statement=sql) as finding:
            try:
                found = keys_of(maker.known, sql, *columns)
            except Unanswered as error:
                seen["unanswered"] += 1
                assert "Binder Error" not in str(error), finding(error=error)
                why[str(error)[:60]] += 1
                continue
            if isinstance(found, Reason):
                seen[found] += 1
                continue
            try:
                counted = session.sql(key_source(sql, *columns).counting_sql).collect()
            except FAILURES as error:
                seen["refused by Spark"] += 1
                if "PARSE_SYNTAX" in str(error):
                    raise
                continue
            plain = {tuple(row)[:-1]: row[-1] for row in counted}
            mine = dict(zip(found.rows, found.numbers, strict=True))
            seen["exact" if found.exact else "weaker"] += 1
            if not found.exact:
                seen["weaker by nothing"] += mine.keys() == plain.keys()
            if plain.keys() - mine.keys() or (found.exact and plain != mine):
                wrong.append(
                    finding(
                        left_out=not found.exact,
                        only_spark=list(plain.keys() - mine.keys())[:5],
                        only_worker=list(mine.keys() - plain.keys())[:5],
                        spark=plain if len(plain) < 9 else len(plain),
                        worker=mine if len(mine) < 9 else len(mine),
                    )
                )
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {dict(seen)}; unanswered {why.most_common(40)}"
    print(counted)
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert seen["exact"] > QUERIES / 10, counted
    assert seen["weaker"] > QUERIES / 20, counted


@pytest.mark.slow
def test_the_workers_partitions_of_random_conditions_include_sparks(session, tmp_path):
    seen: Counter[str] = Counter()
    wrong = []
    for number in range(QUERIES):
        rng = random.Random(SEED * 2_000_003 + number)
        if number % PER_TABLES == 0:
            maker = _tables(session, tmp_path, number, rng)
        session.conf.set("spark.sql.ansi.enabled", str(rng.random() < 0.5).lower())
        table, partitions = random_partitions(rng)
        scope = [("s", {column.name: column.type for column in table.partition_columns})]
        generator = Generator(rng, {})
        layers = [Layer("s")]
        if rng.random() < 0.4:
            columns, types = generator.layer(scope)
            layers.append(Layer("q", columns))
            scope = [("q", types)]
        source = None
        if rng.random() < 0.7:
            sql, keys = _keys_sql(rng, maker)
            source = key_source(sql, *keys)
            theirs = {c.split(".")[1]: t for c, t in keys.items()}
            scope = [*scope, (next(iter(keys)).split(".")[0], theirs)]
        conditions = [f"({generator.condition(scope)})" for _ in range(rng.choice([1, 1, 2]))]
        with case(
            f"names {number}", conditions=conditions, layers=layers, source=source
        ) as finding:
            try:
                session.conf.set("spark.sql.ansi.enabled", "false")
                keys = plain_keys = None
                if source is not None:
                    keys = collect(source, Tables(maker.known, UPath), BOUNDS, {})
                    plain_keys = collect_keys(session, source, KeyBounds(), {})
                mine = fulfilling(table, layers, partitions, conditions, {}, keys)
            except Unanswered as error:
                seen[f"unanswered: {str(error)[:50]}"] += 1
                continue
            session.conf.set("spark.sql.ansi.enabled", str(rng.random() < 0.5).lower())
            try:
                plain = skeleton.fulfilling(
                    session, table, layers, partitions, conditions, {}, plain_keys
                )
            except FAILURES:
                seen["refused by Spark"] += 1
                continue
            if mine is None or plain is None:
                seen["not deterministic"] += 1
                continue
            seen["exact" if mine.exact else "weaker"] += 1
            if not mine.exact:
                seen["weaker by nothing"] += mine.partitions == plain
            plain = [
                each
                for each in plain
                if each in mine.partitions or not _odd_for_spark_alone(table, each)
            ]
            missing = [each.values for each in plain if each not in mine.partitions]
            if missing or (mine.exact and mine.partitions != plain):
                wrong.append(
                    finding(
                        types=[column.type for column in table.partition_columns],
                        exact=mine.exact,
                        only_spark=missing,
                        only_worker=[e.values for e in mine.partitions if e not in plain],
                    )
                )
    counted = f"{repeat(FUZZ_QUERIES=QUERIES)}: {dict(seen)}"
    print(counted)
    assert not wrong, report(wrong, FUZZ_QUERIES=QUERIES)
    assert seen["exact"] > QUERIES / 10, counted


def _odd_for_spark_alone(table, partition):
    """Whether a column of a type that the worker does not evaluate has no certain value."""
    return any(
        column.type in ("timestamp", "char(3)")
        and (table.by_serde if text is None else text in ODD)
        for column, text in zip(table.partition_columns, partition.values, strict=True)
    )


def _keys_sql(rng, maker):
    """A source of one table without conditions, with its columns and their types."""
    table = rng.choice(list(maker.known.tables.values()))
    usable = {
        f"x.{c.name}": c.type
        for c in table.columns
        if kind_of(c.type) in ("integer", "string", "date", "decimal")
    }
    columns = rng.sample(list(usable), min(len(usable), rng.choice([1, 2])))
    listed = ", ".join(f"`x`.`{column.split('.')[1]}`" for column in columns)
    sql = f"SELECT DISTINCT {listed} FROM {table.name} AS `x`"
    return sql, {column: usable[column] for column in columns}


def _tables(session, tmp_path, number, rng) -> Maker:
    folder = tmp_path / f"tables{number}"
    shutil.rmtree(tmp_path / f"tables{number - PER_TABLES}", ignore_errors=True)
    folder.mkdir()
    session.conf.set("spark.sql.ansi.enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for row in session.sql("SHOW TABLES").collect():
        session.sql(f"DROP TABLE IF EXISTS {row.tableName}")
    maker = Maker(session, folder, rng)
    for at in range(4):
        maker.make(f"t{at}")
    return maker
