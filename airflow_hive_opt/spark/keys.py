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
from airflow_hive_opt.spark import connect_frames
from airflow_hive_opt.spark.connect import is_remote
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
    named = frame.toDF(*(f"c{number}" for number, _ in enumerate(frame.columns)))
    with planned_once(session) if len(source.aliases) == 1 else nullcontext():
        keys, count = local_relation(session, named.coalesce(1).distinct().limit(max_keys + 1))
    return Keys(source, keys, count) if count <= max_keys else Reason.TOO_MANY_KEYS


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


def planned_once(session: SparkSession) -> AbstractContextManager[None]:
    """Of one table there is nothing to adapt to, and Spark plans and runs it in two thirds."""
    return conf_set(session, {"spark.sql.adaptive.enabled": "false"})


def is_stable(frame: DataFrame) -> bool:
    """Whether Spark knows the query to give the same rows each time, views and UDFs opened."""
    if is_remote(frame):
        text = connect_frames.analyzed_plan(frame)
    else:
        plan = frame._jdf.queryExecution().analyzed()
        known = plan.deterministic()
        text = plan.treeString(True, False, _ALL_FIELDS, False, False) if known else None
    if text is None:
        return False
    operators = (line.lstrip(" :+-").partition(" ")[0] for line in text.splitlines())
    return NOT_DETERMINISTIC.search(text) is None and not any(
        operator in _UNSTABLE_OPERATORS for operator in operators
    )


def local_relation(session: SparkSession, frame: DataFrame) -> tuple[DataFrame, int]:
    """The frame's rows as local data, and how many they are: reading them again runs no job.

    They never become Python values, which would change some types.
    """
    if is_remote(session):
        return connect_frames.local_relation(session, frame)
    from pyspark.sql import DataFrame

    rows = frame._jdf.collectAsList()
    relation = session._jsparkSession.createDataFrame(rows, frame._jdf.schema())
    return DataFrame(relation, session), rows.size()


def _collected(frame: DataFrame) -> frozenset[tuple[Any, ...]]:
    return frozenset(map(tuple, frame.collect()))


def _type(field: object) -> str:
    return str(field.dataType.simpleString()).lower()  # type: ignore[attr-defined]
