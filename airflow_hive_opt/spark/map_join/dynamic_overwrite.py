"""Overwrites one partition over Spark Connect; old rows stay until the new ones are written.

Spark overwrites a constant partition through the folder ``TABLE/_temporary/0``, which all jobs that
write to the table share, and removes the old rows before the query runs, see ``command``. The
protocol gives no access to the storage. But Spark's dynamic overwrite has a folder of its own for
each job. At the job's end it deletes the partition's folder and renames the new one. It does
neither if the query returns no row. So this module then checks whether the partition's files have
changed, and empties the partition if they have not. The names of a job's files say that they are
its own. So a retry sees them there if nobody knows how the statement has ended.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.remote_operation import OverwrittenPartition
from airflow_hive_opt.metastores.hive_tables import is_transactional
from airflow_hive_opt.spark.catalog.files_below import files_below
from airflow_hive_opt.spark.catalog.table_facts import description_of, type_of
from airflow_hive_opt.spark.map_join.command import COMMITTERS
from airflow_hive_opt.spark.map_join.job_attempt import own_number
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.spark.session.spark_compat import condition_of, settings_of
from airflow_hive_opt.spark.session.statement_errors import cannot_plan
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.one_partition import (
    OverwriteOfPartition,
    is_canonical,
    overwrite_of_partition,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

# Spark's command for files of its own, with the option; without it, it would empty the table.
_DYNAMIC = re.compile(
    r"Execute InsertIntoHadoopFsRelationCommand [^\n]*[\[ ]partitionOverwriteMode=dynamic[,\]]",
    re.IGNORECASE,
)
# The option is enough, but with a legacy setting Spark forgets it once it has cached the table.
_MODE = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
_BASENAME = "mapreduce.output.basename"  # with which the names of Spark's files begin
# Jobs that end at once would all write the file _SUCCESS in the table's folder.
_UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
_JOB = re.compile(r"-\d{5,}-([0-9a-f-]{36})[^/]*$")  # whose ID the name of its folder has too
_MOST = 10_000  # partitions that Spark fetches before it writes, which takes about a second
_RENAMES = ("file:", "hdfs:")  # in one step
_COPIES = ("s3a:",)  # a rename copies each file, then deletes its source
# Else a setting that the protocol does not tell, in core-site.xml, may name another committer. With
# one, some versions of Spark 4.0 to 4.2 write to the table at once, beside the old files.
_COMMITTER = {
    "mapreduce.outputcommitter.factory.class": (
        "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitterFactory"
    )
}


class NotEmptied(Exception):
    """The query has returned no row, but its partition can't be emptied."""


@dataclass(frozen=True)
class DynamicOverwrite:
    """The ``text`` that runs instead of a statement's own, and what is there ``before``."""

    text: str
    before: OverwrittenPartition

    @property
    def conf(self) -> dict[str, str]:
        """The settings of the session while the text runs."""
        return {**_MODE, **_COMMITTER, _BASENAME: self.before.basename}


def dynamic_overwrite(
    session: SparkSession, sql: str, parameters: Mapping[str, object]
) -> DynamicOverwrite | None:
    """How to overwrite the statement's partition; ``None`` if only the statement itself can run.

    This is so unless the statement overwrites one partition, see ``overwrite_of_partition``, of a
    table that Spark itself writes. The partition's folder must be the usual one, on a local disk,
    in HDFS or in S3A, and no setting of Spark's own may name a committer. Spark fetches all
    partitions that differ in the last column alone, so these must not be too many. Before it runs,
    Spark must accept the statement itself: a dynamic overwrite may also read the table that it
    writes. Raises Spark's errors that do not come from the statement.
    """
    found = overwrite_of_partition(sql)
    if found is None:
        return None
    settings = settings_of(session)
    if not settings.keys().isdisjoint(COMMITTERS):
        return None
    basename = f"{settings.get(_BASENAME, 'part')}-{token_hex(8)}"
    try:
        return _planned(session, found, parameters, basename)
    except PySparkException as error:
        if not cannot_plan(error):
            raise
        log.debug("Spark overwrites the partition by itself: %s", in_words(error))
        return None


def _planned(
    session: SparkSession,
    found: OverwriteOfPartition,
    parameters: Mapping[str, object],
    basename: str,
) -> DynamicOverwrite | None:
    table = description_of(session, found.table)
    names: list[str] = table.get("partition_columns", [])
    given = {name.lower(): value for name, value in found.partition}
    # Unlike DESCRIBE AS JSON, this shows CHAR, whose folders have blanks in their names.
    types = {field.name: type_of(field) for field in session.table(found.table).schema.fields}
    columns = [name for name in types if name not in names]
    if given.keys() != {name.lower() for name in names} or not columns:
        return None
    values = {name: given[name.lower()] for name in names}
    if not all(is_canonical(value, types[name]) for name, value in values.items()):
        return None
    whole = found.named(values)
    if (folder := _folder(session, table, whole)) is None:
        return None
    text = whole.with_dynamic_partition(types)
    explained = session.sql(f"EXPLAIN {text}", args=dict(parameters)).collect()
    if not _DYNAMIC.search(str(explained[0][0])):
        return None
    fetched = session.sql(f"SHOW PARTITIONS {whole.table} {whole.fetched_spec}")
    if fetched.limit(_MOST + 1).count() > _MOST:
        return None
    present = _files(session, folder, basename)
    parts = [table["catalog_name"], *table["namespace"], table["table_name"]]
    name = ".".join(map(quote, parts))
    emptied_by = whole.emptied(name, columns)
    if not present.digest:  # there is nothing to delete
        emptied_by = f"ALTER TABLE {name} ADD IF NOT EXISTS {whole.spec}"
    before = OverwrittenPartition(
        partition=f"{name} {whole.spec}",
        table_folder=str(table["location"]),
        basename=basename,
        folder=folder,
        files=present.digest,
        newest=present.newest,
        emptied_by=emptied_by,
    )
    return DynamicOverwrite(text, before)


def _folder(
    session: SparkSession, table: Mapping[str, Any], found: OverwriteOfPartition
) -> str | None:
    """The partition's folder; ``None`` if it has another place, or the table is none of Spark's."""
    location = str(table.get("location", ""))
    if not location.startswith(_RENAMES + _COPIES):
        return None
    if is_transactional(table.get("table_properties") or {}):
        return None
    usual = "/".join([location, *(f"{name}={value}" for name, value in found.partition)])
    return usual if _location(session, f"{found.table} {found.spec}") in (usual, None) else None


def _location(session: SparkSession, partition: str) -> str | None:
    """Where the metastore says that the partition is; ``None`` if it has none."""
    try:
        return str(description_of(session, partition)["location"])
    except AnalysisException as error:
        if condition_of(error) != "PARTITIONS_NOT_FOUND":
            raise
        return None


def has_overwritten(session: SparkSession, before: OverwrittenPartition) -> bool:
    """Whether the partition has all rows of the statement that was to overwrite it.

    Spark moves all files there, in one step unless the partition is in another file system than its
    table. A new partition is one in the metastore after that. ``False`` also if another job has
    replaced the files since, and on S3: a job that fails or is killed there may have moved some
    files only. Raises Spark's errors.
    """
    if not before.folder.startswith(_RENAMES):
        return False
    own = _files(session, before.folder, before.basename).own
    if not own or (job := _JOB.search(own)) is None:
        return False
    written_to = f"{before.table_folder}/.spark-staging-{job[1]}"
    if files_below(session, written_to, lambda files: files.limit(1)):
        return False
    return _location(session, before.partition) == before.folder


def empty_if_unwritten(session: SparkSession, before: OverwrittenPartition) -> None:
    """Empties the partition if the statement that has overwritten it has returned no row.

    ``before`` is the partition as it was before the statement. Raises :class:`NotEmptied` if
    another job has added or removed files since, and Spark's errors.
    """
    now = _files(session, before.folder, before.basename)
    if now.own:
        return
    if now.digest == before.files:
        log.info("the query has returned no row, so the partition is emptied")
        with conf_set(session, {**own_number(), **_UNMARKED}):
            session.sql(before.emptied_by)
    elif now.digest and now.oldest <= before.newest:
        raise NotEmptied(
            f"the query has returned no row, so {before.folder} must be emptied, but another job "
            "has changed it since the statement began. Look at the partition, then clear the task "
            "to run the statement again"
        )


@dataclass(frozen=True)
class _Files:
    """The files of a partition; without any, all is empty or 0.

    ``oldest`` and ``newest`` are when one was written, in milliseconds since 1970. ``own`` is the
    path of one that has a statement's own ``basename`` in its name.
    """

    digest: str = ""
    oldest: int = 0
    newest: int = 0
    own: str = ""


def _files(session: SparkSession, folder: str, basename: str) -> _Files:
    """What is in the folder. A file in it counts as a statement's own only if it is not nested.

    Spark moves a statement's folder into the partition's if another job has just made that one. The
    names of Hive's buckets begin with their number.
    """
    name = folder.rpartition("/")[2]

    def asked(files: DataFrame) -> DataFrame:
        own = files.path.rlike(rf"/\Q{name}\E/[^/]*\Q{basename}\E-[^/]*$")
        own &= ~files.path.contains(f"/{name}/{name}/")
        return files.withColumn("own", own).selectExpr(
            "count(*)",
            "bit_xor(xxhash64(path, length, modificationTime))",
            "min(unix_millis(modificationTime))",
            "max(unix_millis(modificationTime))",
            "min(path) FILTER (WHERE own)",
        )

    rows = files_below(session, folder, asked)
    if not rows or not rows[0][0]:
        return _Files()
    ((count, of_all, oldest, newest, own),) = rows
    return _Files(f"{count} {of_all}", oldest, newest, own or "")
