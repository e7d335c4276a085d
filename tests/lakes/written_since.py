"""Whether a table of a format has been written to since a statement began."""

from __future__ import annotations

import time

from airflow_hive_opt.spark.application.written_since import why_it_may_have_written

HOUR = 3600.0  # seconds


def check_that_it_tells(session, database: str, provider: str) -> None:
    """A new table of the provider in a new database tells of its last write."""
    table = f"{database}.r"
    session.sql(f"CREATE DATABASE {database}")
    session.sql(f"CREATE TABLE {table} (id INT) USING {provider}")
    session.sql(f"INSERT INTO {table} SELECT 1")
    now = time.time()
    for statement in (
        f"INSERT INTO {table} SELECT 2",
        f"MERGE INTO {table} t USING {table} s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"UPDATE {table} SET id = id + 1",
    ):
        assert why_it_may_have_written(session, statement, now + HOUR) is None
        assert "has been written to" in why_it_may_have_written(session, statement, now - HOUR)
    delete = f"DELETE FROM {table} WHERE id = 1"
    assert why_it_may_have_written(session, delete, now - HOUR) is None
    session.sql(f"DROP TABLE {table}")
