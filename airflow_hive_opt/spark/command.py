"""A statement that writes, as Spark's JVM plans it; one partition is overwritten in a safe way.

Spark overwrites a partition that is written out, ``PARTITION (ds = '2026-01-31')``, through
``TABLE/_temporary/0``, which all jobs at that table share: the first to commit takes the others'
files and removes the folder under them. Days of a backfill that run at once then fail, or lose
rows. Where a partition column is dynamic and ``partitionOverwriteMode`` is ``dynamic``, Spark
gives every job a staging folder and moves whole partitions when it commits. The command is the
same otherwise, so this module runs it in that mode: the same writer, the same files, and the
partition's old rows stay until the new ones are there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.spark.operators import operators

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_INSERT = "InsertIntoHadoopFsRelationCommand"
_STATIC = "staticPartitions"
_MODE = "partitionOverwriteMode"
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

    def plan(self) -> None:
        """Has Spark analyse, optimise and plan the statement; raises what Spark raises."""
        self._execution.executedPlan()

    def overwrites_one_partition(self) -> bool:
        """Whether it is ``INSERT OVERWRITE`` of one partition of a table with Spark's own files.

        All partition values are written out, and the session commits as Spark does by default.
        Raises what Spark's analysis raises.
        """
        insert = self._analyzed
        if insert.getClass().getSimpleName() != _INSERT:
            return False
        conf = self._session._jsparkSession.sessionState().conf()
        return (
            str(self._field("mode")) == "Overwrite"
            and not self._field("ifPartitionNotExists")
            and self._field("catalogTable").isDefined()
            and 0 < self._field("partitionColumns").size() == self._field(_STATIC).size()
            and not any(conf.contains(name) for name in _COMMITTERS)
        )

    def overwrite(self) -> None:
        """Runs it with the last partition column as a dynamic one of a single value.

        That writes nothing where the query gives no row. The partition is then emptied by the
        static command, as Spark would have done before the query.
        """
        last = self._field("partitionColumns").last().name()
        static = getattr(self._field(_STATIC), "$minus")(last)
        dynamic = self._jvm.scala.Tuple2(_MODE, "dynamic")
        options = getattr(self._field("options"), "$plus")(dynamic)
        if self._execute({_STATIC: static, "options": options}) == 0:
            log.info("the query gives no row: the partition is emptied")
            no_rows = self._frame(self._field("query")).limit(0)
            self._execute({"query": no_rows.queryExecution().analyzed()})

    def _execute(self, changed: Mapping[str, Any]) -> int:
        """Runs the insert with some fields changed; returns how many rows it wrote."""
        insert = self._analyzed
        gateway: Any = self._session.sparkContext._gateway
        fields = gateway.new_array(self._jvm.java.lang.Object, insert.productArity())
        for at in range(insert.productArity()):
            fields[at] = changed.get(insert.productElementName(at), insert.productElement(at))
        done = self._frame(insert.makeCopy(fields)).queryExecution().commandExecuted()
        for kind, operator in operators(self._jvm, done.commandPhysicalPlan()):
            if kind == "DataWritingCommandExec":
                return int(operator.metrics().apply("numOutputRows").value())
        raise RuntimeError(f"Spark's plan of {_INSERT} has no operator that writes")

    def _frame(self, plan: Any) -> Any:
        """A frame of the JVM's; where the plan is a command, that has run."""
        frames = self._jvm.org.apache.spark.sql.classic.Dataset
        return frames.ofRows(self._session._jsparkSession, plan)

    def _field(self, name: str) -> Any:
        insert = self._analyzed
        names = [insert.productElementName(at) for at in range(insert.productArity())]
        return insert.productElement(names.index(name))

    @cached_property
    def _analyzed(self) -> Any:
        return self._execution.analyzed()

    @cached_property
    def _execution(self) -> Any:
        """Spark's execution of the statement, which runs no command."""
        state = self._session._jsparkSession.sessionState()
        if self.parameters:  # only Spark's own EXPLAIN gives the plan with the values bound
            explain = self._session.sql(f"EXPLAIN {self.text}", args=dict(self.parameters))
            parsed = explain._jdf.queryExecution().analyzed().logicalPlan()
        else:
            parsed = state.sqlParser().parsePlan(self.text)
        modes = self._jvm.org.apache.spark.sql.execution.CommandExecutionMode
        return state.executePlan(parsed, modes.SKIP())
