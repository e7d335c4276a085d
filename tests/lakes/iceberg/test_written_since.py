"""Whether a table of this format has been written to since a statement began."""

from __future__ import annotations

import time

from airflow_hive_opt.spark.application.written_since import why_it_may_have_written

TABLE = "lake.since.r"
HOUR = 3600.0  # seconds


def test_a_table_tells_whether_it_has_been_written_to(lake):
    lake.sql("CREATE DATABASE lake.since")
    lake.sql(f"CREATE TABLE {TABLE} (id INT) USING iceberg")
    lake.sql(f"INSERT INTO {TABLE} SELECT 1")
    now = time.time()
    for statement in (
        f"INSERT INTO {TABLE} SELECT 2",
        f"MERGE INTO {TABLE} t USING {TABLE} s ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"UPDATE {TABLE} SET id = id + 1",
    ):
        assert why_it_may_have_written(lake, statement, now + HOUR) is None
        assert "has been written to" in why_it_may_have_written(lake, statement, now - HOUR)
    assert why_it_may_have_written(lake, f"DELETE FROM {TABLE} WHERE id = 1", now - HOUR) is None
    lake.sql(f"DROP TABLE {TABLE}")
