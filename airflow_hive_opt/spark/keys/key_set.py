"""Collects a small table's keys into a local relation (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from airflow_hive_opt.pruning.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.runtime.partitions import Value, fits
from airflow_hive_opt.spark.keys.local_rows import LocalRows
from airflow_hive_opt.spark.session import connect_frames
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.spark.session.spark_compat import plan_text
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Operators of Spark's plan that may return other rows each time; a view can hide them.
_UNSTABLE_OPERATORS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Sample", "Window"})
_OF_ONE_TABLE = frozenset({"Project", "Filter", "SubqueryAlias", "Relation", "HiveTableRelation"})
_COUNTING = ("Aggregate", "SubqueryAlias", "Project", "Repartition")  # of KeySource.counting_sql
_ROWS = "__rows"
MAX_KEYS = 100_000
MAX_KEY_BYTES = 16 << 20
MOST_BYTES_OF_A_KEY = 16 << 10
"""Bytes. No partition value is longer.

Longer keys are not ignored, because a condition may use only the beginning of a key.
"""
_TEXT_TYPES = ("string", "char", "varchar", "binary")
_TOO_LONG = "airflow_hive_opt: a key is too long"


@dataclass(frozen=True)
class Keys:
    """The distinct keys of a source, held by the driver.

    The columns of ``rows`` are ``c0``, ``c1``, ... in the order of the source's columns. The last
    column counts the source's rows with these keys.
    """

    source: KeySource
    rows: LocalRows

    @property
    def count(self) -> int:
        """The number of distinct keys."""
        return self.rows.count

    @property
    def frame(self) -> DataFrame:
        """The keys as a relation with columns ``c0``, ``c1``, ..."""
        return self.rows.frame.drop(_ROWS)

    @property
    def unique(self) -> bool:
        """Whether every key belongs to one row of the source."""
        return all(row[-1] == 1 for row in self._values)

    def tuples(self, types: Sequence[str]) -> frozenset[tuple[Value, ...]] | None:
        """The keys as typed tuples; ``None`` if they can't be compared without a cast.

        ``types`` are those of ``source.partition_columns``. Keys outside the range of these types
        are left out. Keys with a NULL are left out too, since NULL equals nothing.
        """
        if not self.source.partition_columns:
            return None
        families = [family(type_) for type_ in types]
        if None in families or families != self._families[:-1]:
            return None
        rows = (zip(row, types) for row in self._values)
        tuples = (tuple(v for v, type_ in row if v is not None and fits(v, type_)) for row in rows)
        return frozenset(found for found in tuples if len(found) == len(types))

    @cached_property
    def _families(self) -> list[str | None]:
        return [family(_type(field)) for field in self.rows.schema.fields]

    @cached_property
    def _values(self) -> list[tuple[Value | None, ...]]:
        return self.rows.values(self._families)


@dataclass(frozen=True)
class KeyBounds:
    """The maximum number of one small table's distinct keys, and their maximum total bytes."""

    max_keys: int = MAX_KEYS
    max_key_bytes: int = MAX_KEY_BYTES


def collect_keys(
    session: SparkSession, source: KeySource, bounds: KeyBounds, parameters: Mapping[str, object]
) -> Keys | Reason:
    """Returns the keys, or the reason why they can't be used.

    Reads at most ``max_keys`` keys plus one, which shows whether there are too many. A text longer
    than :data:`MOST_BYTES_OF_A_KEY` never reaches the driver. Raises Spark's errors.
    """
    frame = session.sql(source.counting_sql, args=dict(parameters))
    operators = _operators(frame)
    if operators is None:
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    # adaptive execution has nothing to improve for one table: turning it off saves a third
    own = operators[len(_COUNTING) :] if operators[: len(_COUNTING)] == _COUNTING else operators
    settings = {"spark.sql.adaptive.enabled": "false"} if _OF_ONE_TABLE.issuperset(own) else {}
    texts = [name for name, type_ in frame.dtypes if type_.startswith(_TEXT_TYPES)]
    if texts:
        frame = _without_long_texts(frame, texts)
    try:
        with conf_set(session, settings):
            rows = LocalRows(session, frame.limit(bounds.max_keys + 1))
    except PySparkException as error:
        if _TOO_LONG in str(error):
            return Reason.KEYS_TOO_LARGE
        raise
    if rows.count > bounds.max_keys:
        return Reason.TOO_MANY_KEYS
    may_be_large = texts and rows.count * MOST_BYTES_OF_A_KEY > bounds.max_key_bytes
    if may_be_large and rows.size() > bounds.max_key_bytes:
        return Reason.KEYS_TOO_LARGE
    return Keys(source, rows)


def _without_long_texts(frame: DataFrame, texts: Collection[str]) -> DataFrame:
    """The frame; its run fails for a text that is too long for the driver."""
    return frame.selectExpr(
        *(
            f"IF(octet_length({name}) > {MOST_BYTES_OF_A_KEY}, raise_error('{_TOO_LONG}'), {name}) "
            f"AS {name}"
            if name in texts
            else name
            for name in frame.columns
        )
    )


def is_stable(frame: DataFrame) -> bool:
    """Whether Spark's analysis, views and UDFs included, finds that the rows never change."""
    return _operators(frame) is not None


def _operators(frame: DataFrame) -> tuple[str, ...] | None:
    """The operators of Spark's analysed plan, top down; ``None`` if its rows may differ."""
    if is_remote(frame):
        text = connect_frames.analyzed_plan(frame)
    else:
        plan = frame._jdf.queryExecution().analyzed()
        known = plan.deterministic()
        text = plan_text(plan) if known else None
    if text is None or NOT_DETERMINISTIC.search(text):
        return None
    operators = tuple(line.lstrip(" :+-").partition(" ")[0] for line in text.splitlines())
    return None if _UNSTABLE_OPERATORS.intersection(operators) else operators


def _type(field: object) -> str:
    return str(field.dataType.simpleString()).lower()  # type: ignore[attr-defined]
