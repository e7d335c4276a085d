"""The lowest and highest key of a source that has too many keys for a list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Optional, Union

from airflow_hive_opt.pruning.decisions import KeySource
from airflow_hive_opt.spark.keys.local_rows import WHOLE_CALENDAR
from airflow_hive_opt.spark.session.session_conf import conf_set
from airflow_hive_opt.statement.types import TIMESTAMP, family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LONGEST = 1_000  # characters of a text in the statement
Bound = Union[int, str, date]
"""A value of a column; the microseconds since 1970 in UTC for TIMESTAMP."""
Range = tuple[Bound, Bound]
"""The lowest and the highest value; a single value is both."""


def key_ends(
    session: SparkSession, source: KeySource, parameters: Mapping[str, object]
) -> list[Optional[Range]]:
    """The ends of each column; ``None`` without a key, for long texts, and for other types.

    The source must return the same rows each time. Raises Spark's errors.
    """
    names = [f"c{number}" for number, _ in enumerate(source.columns)]
    keys = source.sql.replace("SELECT DISTINCT ", "SELECT ", 1)
    listed = f"SELECT * FROM ({keys}) AS __keys ({', '.join(names)})"
    types = dict(session.sql(listed, args=dict(parameters)).dtypes)
    ends = [
        f"unix_micros({end}({name}))" if types[name] == TIMESTAMP else f"{end}({name})"
        for name in names
        for end in ("min", "max")
    ]
    with conf_set(session, WHOLE_CALENDAR):
        sql = f"SELECT {', '.join(ends)} FROM ({listed})"
        (row,) = session.sql(sql, args=dict(parameters)).collect()
    found: list[Optional[Range]] = []
    for name, low, high in zip(names, row[::2], row[1::2]):
        exact = family(types[name]) is not None or types[name] == TIMESTAMP
        short = not isinstance(low, str) or max(len(low), len(high)) <= _LONGEST
        found.append((low, high) if exact and short and low is not None else None)
    return found
