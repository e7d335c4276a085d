"""The partitions that keys call for, and which of them a table does not have yet."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeAlias

from airflow_hive_opt.planner.types import family
from airflow_hive_opt.runtime.partitions import Partition, Value, typed

Tuples: TypeAlias = tuple[tuple[Value, ...], ...]
MAX_REQUIRED = 1_000_000


class TooMuchToWaitFor(Exception):
    """The keys call for more partitions than can be listed; says how many."""


@dataclass(frozen=True)
class Required:
    """What one table must have: for each tuple of ``columns`` at least one partition.

    ``all_columns`` are the table's partition columns and ``types`` their Hive types, in order.
    """

    table: str
    all_columns: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[str, ...]
    tuples: Tuples


def combined(
    sources: Iterable[tuple[Sequence[str], Iterable[Sequence[Value]]]],
) -> Iterator[dict[str, Value]]:
    """Every combination of one tuple of each source; those that agree on shared columns.

    Raises :class:`TooMuchToWaitFor` above a million combinations.

    >>> list(combined([(["a"], [(1,), (2,)]), (["b"], [("x",)])]))
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    >>> list(combined([(["a"], [(1,), (2,)]), (["a", "b"], [(2, 3), (4, 5)])]))
    [{'a': 2, 'b': 3}]
    """
    lists = [
        [dict(zip(columns, row, strict=True)) for row in tuples] for columns, tuples in sources
    ]
    count = math.prod(map(len, lists))
    if count > MAX_REQUIRED:
        raise TooMuchToWaitFor(
            f"the keys call for {count:,} combinations of partition values, more than "
            f"{MAX_REQUIRED:,} can't be waited for"
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
    """The tuples that no present partition fulfils, compared as the table types its values."""
    at = [required.all_columns.index(name) for name in required.columns]

    def value(part: Partition, position: int) -> Value | None:
        text = part.values[position]
        return None if text is None else typed(text, required.types[position])

    found = {tuple(value(part, position) for position in at) for part in present}
    return tuple(row for row in required.tuples if row not in found)


def name_of(required: Required, row: Sequence[Value]) -> str:
    """A tuple as people read partitions: ``ds=2026-01-31/region=n``."""
    return "/".join(f"{name}={value}" for name, value in zip(required.columns, row, strict=True))


def encode(found: Sequence[Required]) -> bytes:
    """The list as JSON; dates as text."""
    document = [dataclasses.asdict(required) for required in found]
    return json.dumps(document, default=date.isoformat, ensure_ascii=False).encode()


def decode(data: bytes) -> list[Required]:
    """The list that :func:`encode` wrote; raises ``ValueError``."""
    try:
        return [_required(entry) for entry in json.loads(data)]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"this is no list of required partitions: {error}") from error


def _required(entry: Mapping[str, Any]) -> Required:
    types = dict(zip(entry["all_columns"], entry["types"], strict=True))
    columns = tuple(entry["columns"])
    dates = [family(types[name]) == "date" for name in columns]
    return Required(
        entry["table"],
        tuple(entry["all_columns"]),
        tuple(entry["types"]),
        columns,
        tuple(
            tuple(
                date.fromisoformat(value) if is_date else value
                for value, is_date in zip(row, dates, strict=True)
            )
            for row in entry["tuples"]
        ),
    )
