"""The partitions that keys require, and which of them a table does not have yet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from airflow_hive_opt.metastores.partitions import Partition, Value, typed
from airflow_hive_opt.statement.types import TIMESTAMP
from airflow_hive_opt.statement.zip_strict import zip_strict

Tuples = tuple[tuple[Value, ...], ...]
MAX_REQUIRED = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TooManyRequiredPartitions(Exception):
    """The keys require more partitions than can be listed; the message says how many."""


@dataclass(frozen=True)
class Required:
    """The requirement for one table: at least one partition for each of ``tuples``.

    ``tuples`` are values of ``columns``, in this order. ``all_columns`` are the table's partition
    columns and ``types`` their Hive types, in order.

    ``provider`` is the format of a table that keeps its own list of files, such as ``iceberg``, and
    ``location`` the URI of its data, if known. Both are empty for a table whose partitions are in a
    metastore. Iceberg's partition columns are the columns from whose values it makes its
    partitions. A TIMESTAMP is the number of microseconds since 1970 in UTC.
    """

    table: str
    all_columns: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[str, ...]
    tuples: Tuples
    provider: str = ""
    location: str = ""

    @property
    def types_of_columns(self) -> tuple[str, ...]:
        """The types of ``columns``."""
        return tuple(self.types[self.all_columns.index(name)] for name in self.columns)


def combined(
    sources: Iterable[tuple[Sequence[str], Iterable[Sequence[Value]]]],
) -> Iterator[dict[str, Value]]:
    """Every combination of one tuple of each source, if its tuples agree on shared columns.

    Raises :class:`TooManyRequiredPartitions` for more than a million combinations.

    >>> list(combined([(["a"], [(1,), (2,)]), (["b"], [("x",)])]))
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    >>> list(combined([(["a"], [(1,), (2,)]), (["a", "b"], [(2, 3), (4, 5)])]))
    [{'a': 2, 'b': 3}]
    """
    lists = [[dict(zip_strict(columns, row)) for row in tuples] for columns, tuples in sources]
    count = math.prod(map(len, lists))
    if count > MAX_REQUIRED:
        raise TooManyRequiredPartitions(
            f"the keys match {count:,} combinations of partition values, but the sensor can wait "
            f"for at most {MAX_REQUIRED:,}"
        )
    for combination in itertools.product(*lists):
        merged: dict[str, Value] = {}
        for row in combination:
            if any(merged.get(name, value) != value for name, value in row.items()):
                break
            merged.update(row)
        else:
            yield merged


def missing(required: Required, present: Iterable[Partition]) -> Tuples:
    """The required tuples that no present partition has, compared as typed values."""
    at = [required.all_columns.index(name) for name in required.columns]

    def value(part: Partition, position: int) -> Value | None:
        text = part.values[position]
        return None if text is None else typed(text, required.types[position])

    found = {tuple(value(part, position) for position in at) for part in present}
    return tuple(row for row in required.tuples if row not in found)


def name_of(required: Required, row: Sequence[Value]) -> str:
    """A tuple in the form of a partition name: ``ds=2026-01-31/region=n``."""
    shown = map(_shown, row, required.types_of_columns)
    return "/".join(f"{name}={value}" for name, value in zip_strict(required.columns, shown))


def _shown(value: Value, type_: str) -> str:
    if type_ != TIMESTAMP or not isinstance(value, int):
        return str(value)
    try:
        return (_EPOCH + timedelta(microseconds=value)).isoformat()
    except OverflowError:  # Python's calendar ends in the year 9999
        return f"{value} microseconds"
