"""Whether a table of this format has been written to since a statement began."""

from __future__ import annotations

import time

import pytest

from airflow_hive_opt.spark.application.written_since import why_it_may_have_written
from tests.lakes.written_since import HOUR, check_that_it_tells


def test_a_table_tells_whether_it_has_been_written_to(lake):
    check_that_it_tells(lake, "lake.since", "iceberg")


@pytest.fixture
def branched(lake):
    """A table with a branch; returns a time between the last write to it and one to the branch."""
    lake.sql("CREATE TABLE lake.branched.r (id INT) USING iceberg")
    lake.sql("INSERT INTO lake.branched.r SELECT 1")
    time.sleep(3)  # more than the clocks may differ
    between = time.time()
    lake.sql("ALTER TABLE lake.branched.r CREATE BRANCH b")
    lake.sql("INSERT INTO lake.branched.r.branch_b SELECT 2")
    yield between
    lake.sql("DROP TABLE lake.branched.r")


def test_another_branch_is_not_the_table(lake, branched):
    insert = "INSERT INTO lake.branched.r SELECT 3"
    assert why_it_may_have_written(lake, insert, branched) is None
    assert "has been written to" in why_it_may_have_written(lake, insert, branched - HOUR)


def test_a_statement_that_writes_to_a_branch_finds_it(lake, branched):
    insert = "INSERT INTO lake.branched.r.branch_b SELECT 3"
    assert "has been written to" in why_it_may_have_written(lake, insert, branched)
    assert why_it_may_have_written(lake, insert, branched + HOUR) is None


def test_a_session_that_writes_to_a_branch_finds_it(lake, branched):
    insert = "INSERT INTO lake.branched.r SELECT 3"
    lake.conf.set("spark.wap.branch", "b")
    try:
        assert "has been written to" in why_it_may_have_written(lake, insert, branched)
    finally:
        lake.conf.unset("spark.wap.branch")


def test_a_table_of_the_current_database_is_found(lake, branched):
    catalog, database = lake.sql("SELECT current_catalog(), current_database()").first()
    lake.sql("USE lake.branched")
    try:
        insert = "INSERT INTO r SELECT 3"
        assert why_it_may_have_written(lake, insert, branched) is None
        assert "has been written to" in why_it_may_have_written(lake, insert, branched - HOUR)
    finally:
        lake.sql(f"USE {catalog}.{database}")
