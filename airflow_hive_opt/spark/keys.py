"""Key collection: a small side's query to a set of typed tuples (HIVE-5119, step 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.conditions import NOT_DETERMINISTIC
from airflow_hive_opt.planner.pruning import KeySource
from airflow_hive_opt.planner.reasons import Reason
from airflow_hive_opt.runtime.partitions import Value, family, fits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Operators of Spark's plan that may pick other rows each time; a view can hide them.
_UNSTABLE_OPERATORS = ("GlobalLimit", "LocalLimit", "Offset", "Sample", "Window")
_ALL_FIELDS = 1_000_000


@dataclass(frozen=True)
class Keys:
    """Distinct tuples in the order of the source's partition columns, without NULLs."""

    source: KeySource
    tuples: frozenset[tuple[Value, ...]]
    count: int


def collect_keys(
    session: SparkSession,
    source: KeySource,
    types: Sequence[str],
    max_keys: int,
    parameters: Mapping[str, object],
) -> Keys | Reason:
    """The keys, or why they can't be used.

    ``types`` are the types of ``source.partition_columns``. At most ``max_keys`` tuples are
    taken; one more is asked for, to see whether there are too many. ``count`` is the number of
    distinct keys; ``tuples`` leaves out those that the partition column's type can't hold.
    """
    frame = session.sql(f"{source.sql} LIMIT {max_keys + 1}", args=dict(parameters))
    key_types = [field.dataType.simpleString().lower() for field in frame.schema.fields]
    families = [family(type_) for type_ in types]
    if None in families or families != [family(type_) for type_ in key_types]:
        return Reason.KEY_TYPE_DIFFERS
    if not is_stable(session.sql(source.sql, args=dict(parameters))):
        return Reason.KEY_SOURCE_NOT_DETERMINISTIC
    rows = frame.collect()
    if len(rows) > max_keys:
        return Reason.TOO_MANY_KEYS
    tuples = frozenset(
        tuple(row)
        for row in rows
        if all(fits(value, type_) for value, type_ in zip(row, types, strict=True))
    )
    return Keys(source, tuples, len(rows))


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
