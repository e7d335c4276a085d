"""Runs a statement that writes, as Spark's JVM plans it; overwrites one partition safely.

Spark overwrites a constant partition, ``PARTITION (ds = '2026-01-31')``, through the folder
``TABLE/_temporary/0``. All jobs that write to the table share this folder: the first job to commit
takes the other jobs' files and removes the folder. Days of a backfill that run in parallel then
fail or lose rows. Spark also removes the old rows before the query runs.

Here Spark's own command writes the same files to a folder of this run, below the table.
:class:`~airflow_hive_opt.spark.map_join.partition_folder.PartitionFolder` moves them into place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.catalog.table_facts import is_transactional
from airflow_hive_opt.spark.map_join.job_attempt import InsertedTable
from airflow_hive_opt.spark.map_join.partition_folder import PartitionFolder
from airflow_hive_opt.spark.session.physical_operators import operators
from airflow_hive_opt.spark.session.spark_compat import (
    active,
    execution_of,
    frame_of,
    insert_fields,
    items,
    to_scala,
    unexecuted,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSERT = "InsertIntoHadoopFsRelationCommand"
# The commands of Spark's writers, and of Hive's writers into a table and into a folder.
_WITH_A_PLANNED_QUERY = (_INSERT, "InsertIntoHiveTable", "InsertIntoHiveDirCommand")
# The writes of tables of other catalogs, such as Iceberg's, which commit once at their end.
_COMMITTED_ONCE = (
    "AppendData",
    "OverwriteByExpression",
    "OverwritePartitionsDynamic",
    "ReplaceData",
    "WriteDelta",
    "DeleteFromTable",
)
_STATIC = "staticPartitions"
COMMITTERS = (
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.sources.outputCommitterClass",
    "spark.sql.parquet.output.committer.class",
)
"""With one of these settings, Spark commits in another way than by default."""

# Hadoop's own setting for S3A. Its other committers upload the files to where they belong at once.
_S3A, _S3A_COMMITTER, _RENAMING = "s3a", "fs.s3a.committer.name", "file"
_FACTORY = "mapreduce.outputcommitter.factory.class"
_FACTORY_OF_SCHEME = "mapreduce.outputcommitter.factory.scheme"


class Command:
    """One statement in a session; a ``run_as_planned`` or ``overwrite`` call runs it."""

    def __init__(self, session: SparkSession, text: str, parameters: Mapping[str, object]) -> None:
        self.text = text
        self.parameters = parameters
        self._session = session
        self._jvm: Any = session._jvm
        self._java: Any = session._jsparkSession
        self._ran: Any = None  # the JVM's execution that has run

    @property
    def executed(self) -> Any:
        """The plan of the last run."""
        return self._ran.executedPlan()

    def plan(self) -> None:
        """Has Spark analyse, optimise and plan the statement; raises Spark's errors."""
        execution = self._staged if self.overwrites_one_partition() else self._execution
        execution.executedPlan()

    def run_as_planned(self) -> bool:
        """Runs the statement by its existing plan, so that Spark fetches no partition twice.

        Returns ``False``, and runs nothing, if the plan does not contain the command's query.
        """
        kind = self._analyzed.getClass().getSimpleName()
        if kind not in _WITH_A_PLANNED_QUERY + _COMMITTED_ONCE:
            return False
        self._ran = self._execution
        frame_of(self._session, self._ran).collect()
        return True

    def tables_of_inserts(self) -> list[InsertedTable]:
        """The tables to which Spark adds files by Hadoop's default committer.

        A statement may have several INSERTs. There are none if one of them writes otherwise: by
        Hive, by another committer, after it has removed the table's whole folder, or into a folder
        of Spark's own for dynamic overwrites. Raises the errors of Spark's analysis.
        """
        conf = self._java.sessionState().conf()
        if any(conf.contains(name) for name in COMMITTERS):
            return []
        is_one = _is_insert(self._analyzed)
        plans = [self._analyzed] if is_one else list(items(self._analyzed.children()))
        found = {}
        for plan in plans:
            if not _is_insert(plan) or not (names := insert_fields(plan)):
                return []
            fields = {name: plan.productElement(at) for at, name in enumerate(names)}
            overwrites = str(fields["mode"]) == "Overwrite"
            if overwrites and (fields[_STATIC].isEmpty() or plan.dynamicPartitionOverwrite()):
                return []
            table, hadoop = fields["outputPath"], self._hadoop_conf_with(fields["options"])
            if self._has_another_committer(table, hadoop):
                return []
            levels = fields["partitionColumns"].size()
            found[table.toString()] = InsertedTable(table, levels)
        return list(found.values())

    def overwrites_one_partition(self) -> bool:
        """Whether it is an INSERT OVERWRITE of one partition of a table that Spark itself writes.

        Four conditions must hold. The statement gives all partition values. The partition's folder
        lies below its table's, or the partition does not exist yet. The session has Spark's default
        committers, and so has S3A. The table is not transactional in Hive. Raises the errors of
        Spark's analysis and of its metastore.
        """
        insert = self._analyzed
        if not _is_insert(insert) or not self._fields:
            return False
        conf = self._java.sessionState().conf()
        return (
            str(self._field("mode")) == "Overwrite"
            and not self._field("ifPartitionNotExists")
            and self._field("catalogTable").isDefined()
            and not is_transactional(self._field("catalogTable").get())
            and 0 < self._field("partitionColumns").size() == self._field(_STATIC).size()
            and not any(conf.contains(name) for name in COMMITTERS)
            and not self._has_a_committer_of_s3a(self._field("outputPath"), self._hadoop_conf())
            and self._has_a_name()
            and self._partition_is_below_its_table()
        )

    def overwrite(self) -> bool:
        """Runs the statement through a folder of its own; old rows stay until the new are written.

        Returns ``False``, and changes nothing, if Spark writes the partition under another name
        than the statement's, as it does for ``'01'`` in a number column. The statement must then
        run without this method.
        """
        with active(self._session):
            return self._overwrite()

    def _overwrite(self) -> bool:
        folder = self._folder
        try:
            self._ran = self._staged
            frame_of(self._session, self._ran).collect()
            if not folder.is_as_named():
                return False
            folder.replace(self._files_written())
        finally:
            folder.remove_own()
        self._tell_the_catalog()
        return True

    def _files_written(self) -> int:
        """How many files the last run has written; 0 if Spark does not say."""
        for kind, operator in operators(self.executed):
            found = operator.metrics().get("numFiles")  # of a scan, it is what the scan has read
            if kind == "DataWritingCommandExec" and found.isDefined():
                return int(found.get().value())
        return 0

    @cached_property
    def _staged(self) -> Any:
        """Spark's execution of the insert into the run's own folder."""
        nothing = self._jvm.scala.Option.empty()
        # without a table Spark looks up no partitions
        changed = {
            "outputPath": self._folder.staging,
            "catalogTable": nothing,
            "fileIndex": nothing,
        }
        insert = self._analyzed
        gateway: Any = self._session.sparkContext._gateway
        fields = gateway.new_array(self._jvm.java.lang.Object, insert.productArity())
        for at, name in enumerate(self._fields):
            fields[at] = changed.get(name, insert.productElement(at))
        return execution_of(self._session, insert.makeCopy(fields))

    @cached_property
    def _folder(self) -> PartitionFolder:
        place = self._field("outputPath")
        return PartitionFolder(self._jvm, self._hadoop_conf(), place, self._fragment)

    def _tell_the_catalog(self) -> None:
        """Updates the catalog like Spark's own command; raises the metastore's errors."""
        table = self._field("catalogTable").get()
        command = self._jvm.org.apache.spark.sql.execution.command
        if table.tracksPartitionsInCatalog() and self._partitions().isEmpty():
            spec = self._naming.parsePathFragment(self._fragment)
            added = self._jvm.scala.Tuple2(spec, self._jvm.scala.Option.empty())
            specs = to_scala(self._jvm, [added])
            command.AlterTableAddPartitionCommand(table.identifier(), specs, True).run(self._java)
        statistics = getattr(getattr(command, "CommandUtils$"), "MODULE$")
        statistics.updateTableStats(self._java, table)
        place = self._field("outputPath")
        cached = self._java.sharedState().cacheManager()
        cached.recacheByPath(self._java, place, place.getFileSystem(self._hadoop_conf()))
        self._java.catalog().refreshTable(table.identifier().quotedString())

    def _has_another_committer(self, table: Any, conf: Any) -> bool:
        """Whether Hadoop's settings name a committer for the folder's file system."""
        scheme = table.getFileSystem(conf).getScheme()
        if scheme == _S3A:
            return self._has_a_committer_of_s3a(table, conf)
        names = (_FACTORY, f"{_FACTORY_OF_SCHEME}.{scheme}")
        return any(conf.get(name) is not None for name in names)

    def _has_a_committer_of_s3a(self, table: Any, conf: Any) -> bool:
        files = table.getFileSystem(conf)
        if files.getScheme() != _S3A:
            return False
        # a bucket may have a setting of its own, which only its file system knows
        found = (where.getTrimmed(_S3A_COMMITTER, _RENAMING) for where in (conf, files.getConf()))
        return any(name != _RENAMING for name in found)

    def _has_a_name(self) -> bool:
        """Whether Spark can name the partition's folder; before 4.0 it can't for a NULL number."""
        try:
            return bool(self._fragment)
        except (PySparkException, Py4JJavaError):
            return False

    def _partition_is_below_its_table(self) -> bool:
        found = self._partitions()
        if found.isEmpty():
            return True
        place = self._jvm.org.apache.hadoop.fs.Path(found.head().location())
        usual = self._jvm.org.apache.hadoop.fs.Path(self._field("outputPath"), self._fragment)
        files = usual.getFileSystem(self._hadoop_conf())
        return bool(files.makeQualified(place).equals(files.makeQualified(usual)))

    def _partitions(self) -> Any:
        """The partition in the metastore: one or none."""
        table = self._field("catalogTable").get()
        return (
            self._java.sessionState()
            .catalog()
            .listPartitions(table.identifier(), self._jvm.scala.Some(self._field(_STATIC)))
        )

    @cached_property
    def _fragment(self) -> str:
        """The partition's folder relative to the table's, by the statement's values."""
        columns = self._field("partitionColumns")
        return str(self._naming.getPathFragment(self._field(_STATIC), columns))

    @property
    def _naming(self) -> Any:
        package = self._jvm.org.apache.spark.sql.execution.datasources
        return getattr(getattr(package, "PartitioningUtils$"), "MODULE$")

    def _hadoop_conf(self) -> Any:
        return self._hadoop_conf_with(self._field("options"))

    def _hadoop_conf_with(self, options: Any) -> Any:
        return self._java.sessionState().newHadoopConfWithOptions(options)

    def _field(self, name: str) -> Any:
        return self._analyzed.productElement(self._fields.index(name))

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return insert_fields(self._analyzed) or ()

    @cached_property
    def _analyzed(self) -> Any:
        return self._execution.analyzed()

    @cached_property
    def _execution(self) -> Any:
        return unexecuted(self._session, self.text, self.parameters)


def _is_insert(plan: Any) -> bool:
    return bool(plan.getClass().getSimpleName() == _INSERT)
