"""Key collection: a small side's query to a small local relation (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.planner.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.planner.identifiers import quote
from airflow_hive_opt.planner.pruning import KeySource
from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.planner.types import family
from airflow_hive_opt.runtime.partitions import Value, fits
from airflow_hive_opt.spark.session_conf import conf_set

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Operators of Spark's plan that may pick other rows each time; a view can hide them.
_UNSTABLE_OPERATORS = ("GlobalLimit", "LocalLimit", "Offset", "Sample", "Window")
_ALL_FIELDS = 1_000_000


@dataclass(frozen=True)
class Keys:
    """The distinct keys of a source, held by the driver.

    ``frame`` has columns ``c0``, ``c1``, ... in the order of the source's columns, perhaps with
    duplicates; reading it again runs no job. ``count`` is the number of keys; ``rows`` are they as
    Python's values, where those are known already.
    """

    source: KeySource
    frame: DataFrame
    count: int
    rows: frozenset[tuple[Any, ...]] | None = None

    def tuples(self, types: Sequence[str]) -> frozenset[tuple[Value, ...]] | None:
        """The keys as typed tuples, ``None`` where they don't compare as they are.

        ``types`` are those of ``source.partition_columns``; keys that these can't hold are left
        out.
        """
        if not self.source.partition_columns:
            return None
        families = [family(type_) for type_ in types]
        schema = self.frame.schema.fields
        if None in families or families != [family(_type(field)) for field in schema]:
            return None
        rows = _collected(self.frame) if self.rows is None else self.rows
        return frozenset(
            row
            for row in rows
            if all(fits(value, type_) for value, type_ in zip(row, types, strict=True))
        )


def collect_keys(
    session: SparkSession, source: KeySource, max_keys: int, parameters: Mapping[str, object]
) -> Keys | Reason:
    """The keys, or why they can't be used.

    At most ``max_keys`` are taken; one more is asked for, to see whether there are too many. The
    source is small: one task takes its duplicates out without a shuffle, in half the time.
    """
    frame = session.sql(source.sql_with_duplicates, args=dict(parameters))
    if not is_stable(frame):
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    with _planned_once(session) if len(source.aliases) == 1 else nullcontext():
        rows = frame.coalesce(1).distinct().limit(max_keys + 1)._jdf.collectAsList()
    if rows.size() > max_keys:
        return Reason.TOO_MANY_KEYS
    names = [f"c{number}" for number, _ in enumerate(frame.columns)]
    return Keys(source, local_relation(session, rows, frame).toDF(*names), rows.size())


def keys_of(source: KeySource, rows: DataFrame, max_keys: int) -> Keys | Reason:
    """The keys that the rows of the source's hash table give."""
    names = (f"{quote(column.name)} AS c{at}" for at, column in enumerate(source.columns))
    frame = rows.selectExpr(*names)
    found = _collected(frame)
    if source.partition_columns:  # equal to NULL is nothing
        found = frozenset(row for row in found if None not in row)
    if len(found) > max_keys:
        return Reason.TOO_MANY_KEYS
    return Keys(source, frame, len(found), found)


def first_rows(session: SparkSession, frame: DataFrame, count: int) -> Any:
    """Up to ``count`` rows of a query on one table, by one task, as the JVM's ``List<Row>``."""
    with _planned_once(session):
        return frame.coalesce(1).limit(count)._jdf.collectAsList()


def _planned_once(session: SparkSession) -> AbstractContextManager[None]:
    """Of one table there is nothing to adapt to, and Spark plans and runs it in two thirds."""
    return conf_set(session, {"spark.sql.adaptive.enabled": "false"})


def is_stable(frame: DataFrame) -> bool:
    """Whether Spark knows the query to give the same rows each time, views and UDFs opened."""
    plan = frame._jdf.queryExecution().analyzed()
    if not plan.deterministic():
        return False
    text = plan.treeString(True, False, _ALL_FIELDS, False, False)
    operators = (line.lstrip(" :+-").partition(" ")[0] for line in text.splitlines())
    return NOT_DETERMINISTIC.search(text) is None and not any(
        operator in _UNSTABLE_OPERATORS for operator in operators
    )


def local_relation(session: SparkSession, rows: object, frame: DataFrame) -> DataFrame:
    """The frame's ``rows``, the JVM's ``List<Row>``, as local data: reading them runs no job.

    They never become Python values, which would change some types.
    """
    from pyspark.sql import DataFrame

    return DataFrame(session._jsparkSession.createDataFrame(rows, frame._jdf.schema()), session)


def _collected(frame: DataFrame) -> frozenset[tuple[Any, ...]]:
    return frozenset(map(tuple, frame.collect()))


def _type(field: object) -> str:
    return str(field.dataType.simpleString()).lower()  # type: ignore[attr-defined]
