"""The differences between Spark 3.5 and 4.3, in Python and in the JVM.

Each function detects a difference by what exists, not by a version number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkRuntimeError

from airflow_hive_opt.documents.error_text import in_words
from airflow_hive_opt.documents.log_text import plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ALL_FIELDS = 1_000_000
# The fields of Spark's InsertIntoHadoopFsRelationCommand; Scala 2.12 does not give their names.
_INSERT_FIELDS = (
    "outputPath",
    "staticPartitions",
    "ifPartitionNotExists",
    "partitionColumns",
    "bucketSpec",
    "fileFormat",
    "options",
    "query",
    "mode",
    "catalogTable",
    "fileIndex",
    "outputColumnNames",
)


def items(sequence: Any) -> list[Any]:
    """The items of a short Scala sequence; Scala 2.12 has no Java converters."""
    return [sequence.apply(at) for at in range(sequence.size())]


def to_scala(jvm: Any, objects: list[Any]) -> Any:
    """A Scala sequence of the objects."""
    array = jvm.java.util.ArrayList(len(objects))
    for found in objects:
        array.add(found)
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(array)


def rows_by_arrow(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows of a frame, by Arrow if PySpark can, which saves a third of the time of ``collect``.

    PySpark can from 4.0 on, with a PyArrow that is new enough for it. Only for types whose Python
    values are the same in both ways, such as texts and whole numbers.
    """
    to_arrow = getattr(frame, "toArrow", None)
    try:
        table = None if to_arrow is None else to_arrow()
    except (ImportError, PySparkRuntimeError):  # too old a PyArrow, or its old format is set
        table = None
    if table is None:
        return [tuple(row) for row in frame.collect()]
    return list(zip(*(column.to_pylist() for column in table.columns)))


def plan_text(plan: Any) -> str:
    """A plan of the JVM as text, with all columns of every operator."""
    try:
        return str(plan.treeString(True, False, _ALL_FIELDS, False, False))
    except Py4JJavaError:
        raise
    except Py4JError:  # before Spark 4.0 the method has no last parameter
        return str(plan.treeString(True, False, _ALL_FIELDS, False))


def calls_python(jvm: Any, plan: Any) -> bool:
    """Whether a plan of the JVM, subqueries included, calls Python functions; one JVM call."""
    return bool(plan.containsPattern(_python_call(jvm)))


@lru_cache(maxsize=1)
def _python_call(jvm: Any) -> Any:
    return jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()


def frame_of(session: SparkSession, execution: Any) -> Any:
    """A JVM data frame that runs an execution that Spark has already planned."""
    jvm: Any = session._jvm
    frames = jvm.org.apache.spark.sql.classic.Dataset
    if isinstance(frames, JavaPackage):  # no such class before Spark 4.0
        frames = jvm.org.apache.spark.sql.Dataset
    encoders = jvm.org.apache.spark.sql.Encoders
    return frames(execution, encoders.row(execution.analyzed().schema()))


def unexecuted(session: SparkSession, text: str, parameters: Mapping[str, object]) -> Any:
    """Spark's execution of a statement; analyses and plans on demand, and runs no command.

    Raises the errors of Spark's parser.
    """
    plan = parsed(session, text)
    if parameters:
        plan = _bound(session, text, plan, parameters)
    return execution_of(session, plan)


def execution_of(session: SparkSession, plan: Any) -> Any:
    """Spark's execution of a logical plan; planning it runs no command."""
    jvm: Any = session._jvm
    modes = jvm.org.apache.spark.sql.execution.CommandExecutionMode
    return session._jsparkSession.sessionState().executePlan(plan, modes.SKIP())


def parsed(session: SparkSession, text: str) -> Any:
    """Spark's plan of a statement before analysis; raises the errors of Spark's parser.

    The parser reads settings from the active session: variables, quotes, the time zone of literals.
    """
    with active(session):
        return session._jsparkSession.sessionState().sqlParser().parsePlan(text)


def _bound(session: SparkSession, text: str, plan: Any, parameters: Mapping[str, object]) -> Any:
    jvm: Any = session._jvm
    if not isinstance(jvm.org.apache.spark.sql.classic.Dataset, JavaPackage):
        # only Spark's own EXPLAIN returns the plan with the bound values
        explain = session.sql(f"EXPLAIN {text}", args=dict(parameters))
        return explain._jdf.queryExecution().analyzed().logicalPlan()
    from pyspark.sql.functions import lit  # before Spark 4.0 EXPLAIN binds nothing

    values = jvm.java.util.HashMap()
    for name, value in parameters.items():
        column: Any = lit(value)
        values.put(name, column._jc.expr())
    to_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap
    return jvm.org.apache.spark.sql.catalyst.analysis.NameParameterizedQuery(plan, to_map(values))


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Makes a session the JVM's active one for the block; Spark reads settings from that one."""
    sessions = _sessions_of(session)
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class _NumpyIfLoaded:
    """Calls PySpark's converter for NumPy values only, so that it does not import pandas."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def can_convert(self, value: object) -> bool:
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(value, (numpy.generic, numpy.ndarray)):
            return False
        return bool(self._converter.can_convert(value))

    def convert(self, value: object, client: object) -> Any:
        return self._converter.convert(value, client)


@contextmanager
def without_pandas() -> Iterator[None]:
    """For the block, PySpark imports pandas only for arguments that are NumPy values.

    From Spark 4.0 on, it imports pandas at the first JVM call to look for such values, which takes
    half a second of a task.
    """
    import pyspark.sql.types  # noqa: F401 - it registers the converters
    from py4j import protocol

    before = list(protocol.INPUT_CONVERTER)
    protocol.INPUT_CONVERTER[:] = [
        _NumpyIfLoaded(found) if type(found).__name__.startswith("Numpy") else found
        for found in before
    ]
    try:
        yield
    finally:
        protocol.INPUT_CONVERTER[:] = before


def default_session(jvm: Any) -> Any:
    """The session that the JVM's application was started with."""
    return _session_class(jvm).getDefaultSession().get()


def _sessions_of(session: SparkSession) -> Any:
    """The JVM's session class, which knows the active session."""
    return _session_class(session._jvm)


def _session_class(jvm: Any) -> Any:
    from pyspark.sql import SparkSession

    find = getattr(SparkSession, "_get_j_spark_session_class", None)
    return find(jvm) if find else jvm.org.apache.spark.sql.SparkSession


def condition_of(error: Any) -> str:
    """The error's condition, by Spark's name for it; empty if it has none."""
    find = getattr(error, "getCondition", None) or error.getErrorClass  # before Spark 4.0
    return str(find() or "")


def root_cause(error: Any) -> tuple[str, str]:
    """The Java class of an error's root cause, and the first line of its message."""
    found = getattr(error, "_origin", None)
    if found is None:
        return type(error).__name__, in_words(error).partition("\n")[0]
    while (cause := found.getCause()) is not None:
        found = cause
    words = str(found.getMessage()).partition("\n")[0]
    return str(found.getClass().getName()), plain(words)


def settings_of(session: SparkSession) -> dict[str, str]:
    """The settings of a session, including its application's."""
    if (found := getattr(session.conf, "getAll", None)) is not None:
        return dict(found)
    own: Any = session._jsparkSession  # before Spark 4.0
    entries = own.conf().getAll().mkString("\0").split("\0")
    return dict(entry.split(" -> ", 1) for entry in entries if " -> " in entry)


def variables_of(state: Any) -> Any | None:
    """The session variables of a JVM's session state; ``None`` if this Spark has none."""
    try:
        return state.catalogManager().tempVariableManager()
    except Py4JJavaError:
        raise
    except Py4JError:  # before Spark 4.0
        return None


def is_known_setting(session: SparkSession, name: str) -> bool:
    """Whether this Spark has the session setting."""
    return session.conf.isModifiable(name)


def insert_fields(insert: Any) -> tuple[str, ...] | None:
    """The field names of an InsertIntoHadoopFsRelationCommand; ``None`` if they are not known."""
    count = insert.productArity()
    try:
        return tuple(insert.productElementName(at) for at in range(count))
    except Py4JError:  # Scala 2.12
        return _INSERT_FIELDS if count == len(_INSERT_FIELDS) else None
