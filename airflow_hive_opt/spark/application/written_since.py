"""Whether a statement that was interrupted or has failed may have written: its tables tell.

Spark reports a statement as cancelled also if it was interrupted while it committed, or after that,
and an error of the metastore or of a server that stops may come after the commit. The table has its
rows then, or some of them. Files may be in place before the metastore knows their partition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.spark.catalog.files_below import files_below
from airflow_hive_opt.spark.session.spark_compat import condition_of
from airflow_hive_opt.spark.session.statement_errors import is_refusal
from airflow_hive_opt.statement.added_rows import (
    AddedTo,
    tables_added_to,
    tables_with_files_of_tasks,
)
from airflow_hive_opt.statement.identifiers import BARE, quote
from airflow_hive_opt.statement.lake_formats import DELTA, ICEBERG, WAP_BRANCH, WAP_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LAKES = (ICEBERG, DELTA)  # they commit without moving files
_CLOCKS = 2.0  # seconds; the storage's clock may be behind, and S3's times are whole seconds


class MayHaveWritten(Exception):
    """An earlier attempt may have written rows that the statement would write again."""


def why_it_may_have_written(session: SparkSession, sql: str, began: float) -> str | None:
    """Why a second run of the statement may repeat what it wrote; ``None`` if it has not written.

    ``began`` is when the first run began, in seconds since 1970. A table that another writer has
    changed since then counts too. Raises the errors of Spark that another try may not meet.
    """
    tables = tables_added_to(sql)
    if tables is None:
        return "nobody knows which tables it writes"
    for table in tables:
        try:
            if _has_changed(session, table, _since(began)):
                return f"{table.name} has been written to since that statement began"
        except AnalysisException as error:
            if not is_refusal(error):
                raise
            return f"{table.name} does not tell whether it has been written to: {in_words(error)}"
    return None


def _described(session: SparkSession, table: str) -> dict[str, str]:
    """What Spark says of a table, by the names that it gives. Raises Spark's errors."""
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    return {row.col_name: str(row.data_type) for row in rows}


def _has_changed(session: SparkSession, table: AddedTo, since: str) -> bool:
    """Whether the table has a newer file or version."""
    found = _described(session, table.name)
    provider = found.get("Provider", "").lower()
    if provider == ICEBERG:
        return _has_rows(_newer_versions(session, table.name, since))
    if provider == DELTA:
        history = session.sql(f"DESCRIBE HISTORY {table.name}")
        return _has_rows(history.where(f"timestamp >= {since}").select("version"))
    partition = _as_named(table, found)
    if "Location" in found and _has_newer_files(session, found["Location"], partition, since):
        return True
    if provider == "hive" and "Location" in found:  # Hive's tables have no such column
        return False
    where = [f"_metadata.file_modification_time >= {since}"]
    where += [f"{quote(name)} = '{value}'" for name, value in partition.items()]
    return _has_rows(session.sql(f"SELECT 1 FROM {table.name} WHERE {' AND '.join(where)}"))


def _newer_versions(session: SparkSession, table: str, since: str) -> DataFrame:
    """The newer versions of an Iceberg table; of all branches if the statement writes to one."""
    base, _, last = table.rpartition(".")
    on_branch = base != "" and last.startswith("`branch_")
    name = base if on_branch else table
    if "." not in name:  # or it would be the name of a database
        (current,) = session.sql("SELECT current_catalog(), current_database()").collect()
        name = ".".join([*map(quote, current), name])
    if on_branch or any(session.conf.get(setting, None) for setting in (WAP_BRANCH, WAP_ID)):
        return session.sql(f"SELECT 1 FROM {name}.snapshots WHERE committed_at >= {since}")
    return session.sql(f"SELECT 1 FROM {name}.history WHERE made_current_at >= {since}")


def _has_rows(found: DataFrame) -> bool:
    return bool(found.limit(1).collect())


def _has_newer_files(
    session: SparkSession, folder: str, partition: Mapping[str, str], since: str
) -> bool:
    """Whether there are newer files below a folder, in the folders of the partition."""

    def newer(found: DataFrame) -> DataFrame:
        files = found.where(f"modificationTime >= {since}").selectExpr("lower(path) AS path")
        for name, value in partition.items():  # Hive writes the names of columns in lower case
            files = files.where(files.path.contains(f"/{name}={value}/".lower()))
        return files.limit(1)

    return bool(files_below(session, folder, newer))


def left_files(session: SparkSession, sql: str, began: float) -> str | None:
    """The folder with files that the next job would add to a table that the statement writes.

    Spark's tasks move the files that they have finished to ``TABLE/_temporary/0``, and at its end a
    job moves all files from there into the table, also those of a job that was killed
    (SPARK-29037). No reader of the table sees them before that. ``began`` is when the statement
    began: older files are not its own. Newer ones may be those of another job that still writes.
    ``None``: there are none, or there is no such table. Raises Spark's other errors.
    """
    for table in tables_with_files_of_tasks(sql):
        try:
            found = _described(session, table.name)
            if "Location" not in found or found.get("Provider", "").lower() in _LAKES:
                continue
            folder = f"{found['Location']}/_temporary/0"
            if _has_newer_files(session, folder, _as_named(table, found), _since(began)):
                return folder
        except AnalysisException as error:
            if condition_of(error) != "TABLE_OR_VIEW_NOT_FOUND":
                raise
    return None


def _since(began: float) -> str:
    return f"timestamp_seconds({began - _CLOCKS:.3f})"


def _as_named(table: AddedTo, found: Mapping[str, str]) -> dict[str, str]:
    """The values of the statement's partition that are the names of folders as they are."""
    columns = {name.lower(): (name, kind) for name, kind in found.items()}
    named = {}
    for name, value in table.partition:
        visible, kind = columns.get(name, ("", ""))
        if kind == "string" and BARE.fullmatch(value) and BARE.fullmatch(visible):
            named[visible] = value
    return named
