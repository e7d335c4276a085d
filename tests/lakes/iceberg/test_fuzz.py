"""Random queries and random changes of Iceberg tables, with keys and plain."""

from __future__ import annotations

import pytest

from tests.fuzz.findings import SEED
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.lakes.databases import drop_database
from tests.lakes.random_statements import SMALL, Changes, check_changes, check_queries
from tests.lakes.session import another_session


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Iceberg's, by the values of their columns."""
    session = another_session(lake)
    for name, value in SMALL.items():
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
    drop_database(session, "made")


def test_random_queries_have_plain_sparks_rows(fuzz, tmp_path):
    check_queries(fuzz, tmp_path, least_restricted=1 / 4)


def test_random_changes_leave_the_table_that_plain_spark_leaves(fuzz, tmp_path):
    changes = Changes(
        layouts=("copy-on-write", "merge-on-read"),
        create=lambda table, mode, fact: _copy(fuzz, table, mode, fact),
        refused=("CARDINALITY",),
        most_refused=1 / 4,
        least_restricted=1 / 5,
        faults=("Invalid object: null",),  # Iceberg 1.11, if a partition of strings is NULL
    )
    check_changes(fuzz, tmp_path, changes)


def _copy(session, table: str, mode: str, fact: str) -> None:
    session.sql(f"DROP TABLE IF EXISTS lake.fuzz.{table}")
    layout = ", ".join(FACTS[fact][1])
    properties = ", ".join(
        f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete")
    )
    session.sql(
        f"CREATE TABLE lake.fuzz.{table} USING iceberg PARTITIONED BY ({layout}) "
        f"TBLPROPERTIES ('format-version' = '2', {properties}) AS SELECT * FROM lake.fuzz.{fact}"
    )
