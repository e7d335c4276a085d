"""Random queries and random changes of Delta tables, with keys and plain."""

from __future__ import annotations

import pytest

from tests.fuzz.findings import SEED
from tests.fuzz.schema import DIMENSIONS, FACTS, setup
from tests.lakes.databases import drop_database
from tests.lakes.random_statements import Changes, check_changes, check_queries
from tests.lakes.session import another_session

LAYOUTS = {
    "partitions": ("PARTITIONED BY ({})", {}),
    "deletion vectors": ("PARTITIONED BY ({})", {"delta.enableDeletionVectors": "true"}),
    "column mapping": ("PARTITIONED BY ({})", {"delta.columnMapping.mode": "name"}),
    "clustering": ("CLUSTER BY ({})", {}),
}


@pytest.fixture(scope="module")
def fuzz(lake):
    """The tables of the random queries: the facts are Delta's, half of them clustered."""
    session = another_session(lake)
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


def test_random_queries_have_plain_sparks_rows(fuzz, tmp_path):
    check_queries(fuzz, tmp_path, least_restricted=1 / 4)


def test_random_changes_leave_the_table_that_plain_spark_leaves(fuzz, tmp_path):
    changes = Changes(
        layouts=tuple(sorted(LAYOUTS)),
        create=lambda table, layout, fact: _create(
            fuzz, f"fuzz.{table}", layout, fact, f"fuzz.{fact}"
        ),
        refused=("DELTA_UNSUPPORTED_SUBQUERY", "DELTA_MULTIPLE_SOURCE_ROW_MATCHING"),
        most_refused=1 / 3,
        least_restricted=1 / 5,
        accepts=lambda sql: sql.startswith("MERGE"),  # and few of the others
    )
    check_changes(fuzz, tmp_path, changes)


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
