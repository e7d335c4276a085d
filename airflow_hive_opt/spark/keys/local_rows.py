"""Rows in the driver's memory: as a relation that needs no Spark job, and as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.spark.session import connect_frames
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


WHOLE_CALENDAR = {"spark.sql.datetime.java8API.enabled": "true"}
"""A setting for rows with dates: Java's older date classes do not cover all days and years."""


class LocalRows:
    """The rows of ``frame``, which runs once; ``count`` is their number.

    Dates need :data:`WHOLE_CALENDAR` in the session's settings while the frame runs.
    :attr:`frame` never converts the rows to Python values, which would change some types.
    """

    def __init__(self, session: SparkSession, frame: DataFrame) -> None:
        self._session = session
        self._collected = frame
        self._java: Any = None  # a Java list
        if is_remote(session):
            self._relation, self.count, self._bytes = connect_frames.local_relation(session, frame)
            return
        with active(session):
            # encodes the rows by the settings of the active session, which a thread has none of
            rows = frame._jdf.toDF()
            self._java, self._java_schema = rows.collectAsList(), rows.schema()
        self.count = int(self._java.size())

    def size(self) -> int:
        """The approximate size of the values in bytes; does not copy the rows to Python."""
        if self._java is None:
            return self._bytes
        builder = self._session._jvm.java.lang.StringBuilder()  # type: ignore[union-attr]
        return int(builder.append(self._java).length())

    @cached_property
    def schema(self) -> StructType:
        """The columns and their types."""
        return self._collected.schema

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a local relation."""
        if self._java is None:
            return self._relation
        from pyspark.sql import DataFrame

        session: Any = self._session._jsparkSession
        return DataFrame(session.createDataFrame(self._java, self._java_schema), self._session)

    def values(self, families: Sequence[str | None]) -> list[tuple[Value | None, ...]]:
        """The rows as Python values.

        ``families`` are the columns' :func:`~airflow_hive_opt.statement.types.family`. Parses the
        Java list's text if that is unambiguous: ``collect`` opens a socket, which takes longer for
        few rows. Raises ``ValueError`` for dates that Python can't represent.
        """
        text = None if self._java is None else str(self._java.toString())
        rows = None if text is None else rows_in(text, families, self.count)
        return [tuple(row) for row in self.frame.collect()] if rows is None else rows


def rows_in(
    text: str, families: Sequence[str | None], count: int
) -> list[tuple[Value | None, ...]] | None:
    """The ``count`` rows in the text of a Java list; ``None`` if the text is ambiguous.

    >>> rows_in("[[8,a], [null,b c]]", ["integer", "string"], 2)
    [(8, 'a'), (None, 'b c')]
    >>> rows_in("[[a,b]]", ["string"], 1), rows_in("[[null]]", ["string"], 1)
    (None, None)
    """
    if not count:
        return []
    # separators inside strings make more parts than there are rows and columns
    rows = [row.split(",") for row in text[2:-2].split("], [")]
    if len(rows) != count or any(len(row) != len(families) for row in rows):
        return None
    strings = [at for at, family in enumerate(families) if family == "string"]
    if any(row[at] == "null" for at in strings for row in rows):
        return None
    return [tuple(map(_value, row, families)) for row in rows]


def _value(text: str, family: str | None) -> Value | None:
    if text == "null":
        return None
    if family == "integer":
        return int(text)
    return date.fromisoformat(text) if family == "date" else text
