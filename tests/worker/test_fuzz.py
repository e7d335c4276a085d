"""Random key queries on random tables: the worker's keys have all of Spark's.

``FUZZ_QUERIES=3000 FUZZ_SEED=7`` tests more of them.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter

import pytest
from pyspark.errors import PySparkException

from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.worker.unanswered import Unanswered
from tests.fuzz.findings import SEED, case, count_of, repeat, report
from tests.fuzz.test_fuzz import SETTINGS
from tests.worker.fuzzed_queries import Generator
from tests.worker.fuzzed_tables import Maker
from tests.worker.small_tables import key_source, keys_of

QUERIES = count_of("FUZZ_QUERIES", 60)
PER_TABLES = 150
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
def test_keys(session, tmp_path):
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
                why[str(error)[:60]] += 1
                continue
            if isinstance(found, Reason):
                seen[found] += 1
                continue
            try:
                counted = session.sql(key_source(sql, *columns).counting_sql).collect()
            except PySparkException as error:
                seen["refused by Spark"] += 1
                if "PARSE" in str(error.getCondition() or ""):
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
