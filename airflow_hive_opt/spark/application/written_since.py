"""Whether an interrupted statement may have written: its tables tell.

Spark reports a statement as cancelled also if it was interrupted while it committed, or after that.
The table has its rows then, or some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.statement.added_rows import AddedTo, tables_added_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLOCKS = 2.0  # seconds; the storage's clock may be behind, and S3's times are whole seconds


def why_it_may_have_written(session: SparkSession, sql: str, began: float) -> str | None:
    """Why a second run of the statement may repeat what it wrote; ``None`` if it has not written.

    ``began`` is when the first run began, in seconds since 1970. A table that another writer has
    changed since then counts too.
    """
    tables = tables_added_to(sql)
    if tables is None:
        return "nobody knows which tables it writes"
    since = f"timestamp_seconds({began - _CLOCKS:.3f})"
    for table in tables:
        try:
            if _newer(session, table, since).limit(1).collect():
                return f"{table.name} has been written to since that statement began"
        except PySparkException as error:
            return f"{table.name} does not tell whether it has been written to: {in_words(error)}"
    return None


def _newer(session: SparkSession, table: AddedTo, since: str) -> DataFrame:
    """A row for each file or version of the table that is newer."""
    described = {
        row.col_name: row.data_type
        for row in session.sql(f"DESCRIBE TABLE EXTENDED {table.name}").collect()
    }
    provider = str(described.get("Provider", "")).lower()
    if provider == "iceberg":
        return session.sql(f"SELECT 1 FROM {table.name}.snapshots WHERE committed_at >= {since}")
    if provider == "delta":
        history = session.sql(f"DESCRIBE HISTORY {table.name}")
        return history.where(f"timestamp >= {since}").select("version")
    if provider == "hive":  # whose tables have no column _metadata
        listed = session.read.format("binaryFile").option("recursiveFileLookup", "true")
        files = listed.load(str(described["Location"])).where(f"modificationTime >= {since}")
        return files.select("path")
    where = f"_metadata.file_modification_time >= {since}"
    if table.partition:
        where = f"{table.partition} AND {where}"
    return session.sql(f"SELECT 1 FROM {table.name} WHERE {where}")
