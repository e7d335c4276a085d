"""A statement that writes, as Spark's JVM plans it; one partition is overwritten in a safe way.

Spark overwrites a partition that is written out, ``PARTITION (ds = '2026-01-31')``, through
``TABLE/_temporary/0``, which all jobs at that table share: the first to commit takes the others'
files and removes the folder under them. Days of a backfill that run at once then fail, or lose
rows. It also removes the old rows before the query runs.

Here Spark's own command writes the same files into a folder of the run's own below the table, and
:class:`~airflow_hive_opt.spark.map_join.partition_folder.PartitionFolder` moves them into place.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.spark.map_join.partition_folder import PartitionFolder
from airflow_hive_opt.spark.session.spark_compat import (
    active,
    execution_of,
    frame_of,
    insert_fields,
    to_scala,
    unexecuted,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSERT = "InsertIntoHadoopFsRelationCommand"
# By Spark's writers, and by Hive's: into a table, and into a folder.
_WITH_A_PLANNED_QUERY = (_INSERT, "InsertIntoHiveTable", "InsertIntoHiveDirCommand")
_STATIC = "staticPartitions"
# Whoever sets one of these commits in another way.
_COMMITTERS = (
    "spark.sql.sources.commitProtocolClass",
    "spark.sql.sources.outputCommitterClass",
    "spark.sql.parquet.output.committer.class",
)


class Command:
    """One statement in a session; nothing runs before :meth:`overwrite`."""

    def __init__(self, session: SparkSession, text: str, parameters: Mapping[str, object]) -> None:
        self.text = text
        self.parameters = parameters
        self._session = session
        self._jvm: Any = session._jvm
        self._java: Any = session._jsparkSession

    def plan(self) -> None:
        """Has Spark analyse, optimise and plan what will run; raises what Spark raises."""
        execution = self._staged if self.overwrites_one_partition() else self._execution
        execution.executedPlan()

    def run_as_planned(self) -> bool:
        """Runs it by the plan that is there, so that no partition is fetched twice.

        ``False`` where the query is no part of the plan: nothing has run then.
        """
        if self._analyzed.getClass().getSimpleName() not in _WITH_A_PLANNED_QUERY:
            return False
        frame_of(self._session, self._execution).collect()
        return True

    def overwrites_one_partition(self) -> bool:
        """Whether it is ``INSERT OVERWRITE`` of one partition of a table with Spark's own files.

        All partition values are written out, the partition lies below its table or is not there
        yet, and the session commits as Spark does by default. Raises what Spark's analysis and
        its metastore raise.
        """
        insert = self._analyzed
        if insert.getClass().getSimpleName() != _INSERT or not self._fields:
            return False
        conf = self._java.sessionState().conf()
        return (
            str(self._field("mode")) == "Overwrite"
            and not self._field("ifPartitionNotExists")
            and self._field("catalogTable").isDefined()
            and 0 < self._field("partitionColumns").size() == self._field(_STATIC).size()
            and not any(conf.contains(name) for name in _COMMITTERS)
            and self._has_a_name()
            and self._partition_is_below_its_table()
        )

    def overwrite(self) -> bool:
        """Runs it by way of a folder of its own; the old rows stay until the new are written.

        ``False`` where Spark writes the partition under another name than the statement's, as it
        does for ``'01'`` of a number: nothing is changed then, and the statement has to run plain.
        """
        with active(self._session):
            return self._overwrite()

    def _overwrite(self) -> bool:
        folder = self._folder
        try:
            frame_of(self._session, self._staged).collect()
            if not folder.is_as_named():
                return False
            folder.replace()
        finally:
            folder.remove_own()
        self._tell_the_catalog()
        return True

    @cached_property
    def _staged(self) -> Any:
        """Spark's execution of the insert into the run's own folder."""
        nothing = self._jvm.scala.Option.empty()
        # without a table Spark looks for no partitions
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
        """What Spark's command does once the files are there; raises what the metastore raises."""
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

    def _has_a_name(self) -> bool:
        """Whether Spark names the partition's folder; before 4.0 it can't for a NULL number."""
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
        """The partition as the metastore has it: one or none."""
        table = self._field("catalogTable").get()
        return (
            self._java.sessionState()
            .catalog()
            .listPartitions(table.identifier(), self._jvm.scala.Some(self._field(_STATIC)))
        )

    @cached_property
    def _fragment(self) -> str:
        """The partition's folder below the table's, as the statement names it."""
        columns = self._field("partitionColumns")
        return str(self._naming.getPathFragment(self._field(_STATIC), columns))

    @property
    def _naming(self) -> Any:
        package = self._jvm.org.apache.spark.sql.execution.datasources
        return getattr(getattr(package, "PartitioningUtils$"), "MODULE$")

    def _hadoop_conf(self) -> Any:
        return self._java.sessionState().newHadoopConfWithOptions(self._field("options"))

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
