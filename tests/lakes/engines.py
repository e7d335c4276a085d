"""Lists that Spark has made of lake tables, for tests of engines that read the same tables."""

from __future__ import annotations

from pathlib import Path

from upath import UPath

from airflow_hive_opt.documents.descriptor import load
from airflow_hive_opt.engines.scan import PrunedScan, scan_of
from tests.spark.stages import job_of, prune

ZONE = "America/New_York"
COLUMNS = {
    "day": "date_add(DATE'2024-03-08', CAST(id AS INT))",
    "at": "timestampadd(HOUR, CAST(id AS INT), TIMESTAMP'2024-03-09 23:30:00')",  # clocks change
    "s": "CASE WHEN id = 4 THEN 'it''s é b/c%' ELSE concat('s', id) END",
    "l": "id + 10000000000",
}
_LISTED = ", ".join(f"{sql} AS {name}" for name, sql in COLUMNS.items())
ROWS = f"SELECT id, {_LISTED} FROM range(8)"
KEYS = f"SELECT id AS g, {_LISTED} FROM range(8)"
NULLS = "SELECT 100L, " + ", ".join(["NULL"] * len(COLUMNS))


def join_on(table: str, keys: str, column: str) -> str:
    """A statement that needs one or two of the rows."""
    return f"SELECT t.id FROM {table} t JOIN {keys} k ON t.{column} = k.{column} AND k.g IN (4, 5)"


def scan_by_spark(session, sql: str, path: Path) -> PrunedScan:
    """What a statement reads of its only lake table, by the file that Spark's local task writes."""
    file = UPath(path) / "descriptor.json"
    prune(session, job_of(sql), file)
    descriptor = load(file)
    return scan_of(descriptor, descriptor.row_filters[0].scan.table)


def plain_ids(session, sql: str) -> list[int]:
    """The ids that plain Spark finds."""
    return sorted(row[0] for row in session.sql(sql).collect())
