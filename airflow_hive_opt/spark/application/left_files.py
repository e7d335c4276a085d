"""Files that a killed job has left for the next job on its table, which would add them.

Spark's tasks move the files that they have finished to ``TABLE/_temporary/0``, and at its end a
job moves all files from there into the table, those of other jobs too (SPARK-29037). No reader of
the table sees them before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from airflow_hive_opt.spark.application.written_since import CLOCKS, described
from airflow_hive_opt.statement.added_rows import tables_with_files_of_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDER = "_temporary/0"  # of jobs whose attempt has no number of its own


def left_files(session: SparkSession, sql: str, began: float) -> str | None:
    """The folder with such files of a table that the statement writes; ``None``: there are none.

    ``began`` is when the statement began, in seconds since 1970: older files are another job's. But
    newer ones may be another job's too. Raises Spark's errors, but those of a table that can't be
    read.
    """
    for table in tables_with_files_of_tasks(sql):
        try:
            location = described(session, table.name).get("Location")
            if location is None:
                continue
            folder = f"{location}/{_FOLDER}"
            files = session.read.format("binaryFile").option("recursiveFileLookup", "true")
            newer = files.load(folder).where(
                f"modificationTime >= timestamp_seconds({began - CLOCKS:.3f})"
            )
            if newer.select("path").limit(1).collect():
                return folder
        except AnalysisException:  # such as a folder that is not there
            continue
    return None
