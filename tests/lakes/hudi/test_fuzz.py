"""Random queries and random changes of Hudi tables, with keys and plain."""

from __future__ import annotations

import pytest

from tests.fuzz.findings import SEED
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.lakes.random_statements import SMALL, Changes, check_changes, check_queries

# Their metastore entries would be written with every commit.
TABLE = "primaryKey = 'id', 'hoodie.datasource.hive_sync.enable' = 'false'"


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Hudi's, by their partition columns."""
    session = lake.newSession()
    for name, value in SMALL.items():
        session.conf.set(name, value)
    for kind in ("insert", "upsert", "delete", "bulkinsert"):
        session.conf.set(f"hoodie.{kind}.shuffle.parallelism", "1")
    session.sql("CREATE DATABASE made")
    session.sql("USE made")
    setup(session, SEED)
    session.sql("CREATE DATABASE fuzz")
    for number, name in enumerate(FACTS):
        _create(session, f"fuzz.{name}", "mor" if number % 2 else "cow", name)
    for name in DIMENSIONS:
        session.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT * FROM made.{name}")
    session.sql("USE fuzz")
    yield session
    session.sql("USE default")
    session.sql("DROP DATABASE made CASCADE")
    session.sql("DROP DATABASE fuzz CASCADE")


def _create(session, table: str, type_: str, name: str) -> None:
    columns = ", ".join(f"{each} {kind}" for part in FACTS[name] for each, kind in part.items())
    session.sql(f"DROP TABLE IF EXISTS {table}")
    session.sql(
        f"CREATE TABLE {table} ({columns}) USING hudi PARTITIONED BY ({', '.join(FACTS[name][1])}) "
        f"TBLPROPERTIES (type = '{type_}', {TABLE})"
    )
    session.sql(f"INSERT INTO {table} SELECT * FROM made.{name}")


def test_random_queries_have_plain_sparks_rows(fuzz, tmp_path):
    check_queries(fuzz, tmp_path, least_restricted=1 / 5)


def test_random_changes_leave_the_table_that_plain_spark_leaves(fuzz, tmp_path):
    """Keys are added to none of them; what Hudi refuses must be refused."""
    changes = Changes(
        layouts=("cow", "mor"),
        create=lambda table, type_, fact: _create(fuzz, f"fuzz.{table}", type_, fact),
        refused=(),
        most_refused=1,
        least_restricted=0,
    )
    check_changes(fuzz, tmp_path, changes)
