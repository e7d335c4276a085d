"""Turns keys into conditions on the columns by which a table groups its files.

The table's own metadata then finds the files. It may compare only lists up to some length value by
value with the lowest and highest value of each file. Many keys therefore become ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Optional

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.pruning.decisions import Alternative, KeySource, ScanDecision
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.keys.key_ends import Bound, Range
from airflow_hive_opt.spark.local_task.row_filters import row_filter_on
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.types import INTEGER_BITS, TIMESTAMP

MOST_RANGES = 100
MOST_LISTED = 10_000
"""A statement with a longer list takes Spark seconds to read."""
_SHORT = 200  # a list up to this length is as good as the ranges of its values
# Spark puts it in place of bytes that are no UTF-8, so that different values have the same text.
_REPLACEMENT = "\ufffd"
# The source's column that a column of the scan equals, and its values.
_Equal = tuple[KeySource, int, list[Range]]


@dataclass(frozen=True)
class ValueFilter:
    """A condition on a ``column`` of the scanned table, and the keys from which it was made.

    ``keys`` is ``None`` if only their lowest and highest value is known.
    """

    column: str
    row_filter: RowFilter
    keys: Optional[tuple[Bound, ...]]

    @property
    def is_exact(self) -> bool:
        """Whether the condition is the list of all keys."""
        return self.keys is not None and not self.row_filter.is_range


def value_filters(
    decision: ScanDecision,
    keys_of: Callable[[KeySource], Keys | Reason],
    ends_of: Callable[[KeySource], Sequence[Range | None]],
    most_values: Callable[[Table, str], int],
    merged: str | None = None,
    listed: Container[str] = (),
) -> tuple[ValueFilter, ...] | Reason:
    """The conditions on the scan, one for each restricted column, or why there are none.

    ``keys_of`` collects the keys of a source. If they are too many, ``ends_of`` gives the lowest
    and highest value of each of its columns. ``most_values`` says how many values of a column may
    be a list. ``merged`` is the alias of MERGE's source if the scan
    is its target. Up to :data:`MOST_LISTED` keys of the columns in ``listed`` are a list in any
    case. A scan with several alternatives reads the values of all of them. Raises Spark's errors.
    """
    relation = decision.relation
    if relation is None:
        return decision.reason
    types = {column.name: column.type for column in decision.table.pruning_columns}
    failures: list[Reason] = []
    found = [_equalities(each, keys_of, ends_of, types, failures) for each in decision.alternatives]
    filters = [
        _value_filter(
            relation,
            name,
            column,
            [each[column.name] for each in found],
            most_values(decision.table, column.name),
            merged,
            column.name in listed,
        )
        for name, column in relation.table.visible_pruning_columns
        if all(column.name in each for each in found)
    ]
    if filters:
        return tuple(filters)
    return failures[0] if failures else Reason.KEYS_NOT_COMPARED_AS_COLUMNS


def _equalities(
    alternative: Alternative,
    keys_of: Callable[[KeySource], Keys | Reason],
    ends_of: Callable[[KeySource], Sequence[Range | None]],
    types: dict[str, str],
    failures: list[Reason],
) -> dict[str, _Equal]:
    """For each column of the scan, an equal key column: the one with the fewest keys."""
    found: dict[str, _Equal] = {}
    for source in alternative.sources:
        keys = keys_of(source)
        ends = ends_of(source) if keys is Reason.TOO_MANY_KEYS else ()
        if isinstance(keys, Reason) and not ends:
            failures.append(keys)
            continue
        for at, column in enumerate(source.partition_columns):
            if isinstance(keys, Reason):
                values = None if (both := ends[at]) is None else [both]
            else:
                values = _values(keys, at, types[column])
            if values is None or any(is_replaced(low) or is_replaced(high) for low, high in values):
                failures.append(Reason.TYPE_NOT_COMPARABLE)
            elif column not in found or len(values) < len(found[column][2]):
                found[column] = source, at, values
    return found


def is_replaced(value: Bound) -> bool:
    """Whether a text may stand for other bytes."""
    return isinstance(value, str) and _REPLACEMENT in value


def _values(keys: Keys, at: int, type_: str) -> list[Range] | None:
    """The values of one key column; ``None`` if they are not of a type like the scan's column."""
    found = keys.micros(at) if type_ == TIMESTAMP else keys.column(at, type_)
    return None if found is None else [(value, value) for value in found]


def _value_filter(
    relation: TableRelation,
    name: str,
    column: Column,
    equal: Sequence[_Equal],
    most_values: int,
    merged: str | None,
    listed: bool,
) -> ValueFilter:
    type_ = column.type
    values = sorted({range_ for each in equal for range_ in each[2]})
    keys = tuple(low for low, _ in values) if all(low == high for low, high in values) else None
    is_range = _becomes_ranges(values, most_values)
    if listed and keys is not None and most_values > 1 and len(keys) <= MOST_LISTED:
        is_range = False
    ends = [end for range_ in joined(values) for end in range_] if is_range else None
    source, at, _ = equal[0]
    sources = dict.fromkeys(each[0].name for each in equal)
    guarded = merged is not None and source.aliases == (merged,)
    names = [f"{quote(column.alias)}.{quote(column.name)}" for column in source.columns]
    asked = [*source.asked_sql, *(f"{each} IS NOT NULL" for each in names)]
    if bits := INTEGER_BITS.get(type_):  # a larger key equals nothing, so it is not listed
        asked.append(f"{names[at]} BETWEEN {-(1 << bits - 1)} AND {(1 << bits - 1) - 1}")
    row_filter = row_filter_on(
        relation,
        name,
        type_,
        [low for low, _ in values] if ends is None else ends,
        is_range,
        SourceKeys(source.aliases, " and ".join(sources), source.sql, len(values)),
        guard=names[at] if guarded else None,
        guarded=tuple(asked) if guarded else (),
    )
    return ValueFilter(column.name, row_filter, keys)


def _becomes_ranges(values: Sequence[Range], most_values: int) -> bool:
    """Whether the values are ranges, are too many for a list, or are a few ranges exactly."""
    if len(values) > most_values or any(low != high for low, high in values):
        return True
    if len(values) <= _SHORT or isinstance(values[0][0], str):
        return False
    return len(joined(values)) < MOST_RANGES


def with_fewer_ranges(found: ValueFilter, most: int) -> ValueFilter:
    """The condition with at most ``most`` ranges of its keys.

    A list stays as it is, also one whose values are written as ranges.
    """
    ends = found.row_filter.values
    if found.keys is None or not found.row_filter.is_range or ends[::2] == ends[1::2]:
        return found
    ranges = joined([(key, key) for key in found.keys], most)
    values = tuple(str(end) for range_ in ranges for end in range_)
    return replace(found, row_filter=replace(found.row_filter, values=values))


def joined(values: Sequence[Range], most: int = MOST_RANGES) -> list[Range]:
    """At most ``most`` ranges that contain all of the sorted ``values``.

    Numbers and dates are separated at the widest gaps. Texts, whose distance is not known, are
    separated into ranges of the same number of values.

    >>> joined([(1, 1), (2, 2), (3, 3), (9, 9)])
    [(1, 3), (9, 9)]
    >>> joined([("a", "a"), ("b", "d"), ("c", "c")])
    [('a', 'a'), ('b', 'd')]
    >>> joined([(1, 1), (2, 2), (5, 5), (9, 9)], 2)
    [(1, 5), (9, 9)]
    """
    apart: list[Range] = []
    for low, high in values:
        if apart and not _is_above(low, apart[-1][1]):
            apart[-1] = apart[-1][0], max(high, apart[-1][1])
        else:
            apart.append((low, high))
    gaps = [_gap(before[1], after[0]) for before, after in zip(apart, apart[1:])]
    if any(gap is None for gap in gaps):
        size = -(-len(apart) // most)
        starts = list(range(size, len(apart), size))
    else:
        widest = sorted(range(len(gaps)), key=lambda at: -(gaps[at] or 0))[: most - 1]
        starts = sorted(at + 1 for at in widest if (gaps[at] or 0) > 1)
    edges = [0, *starts, len(apart)]
    return [(apart[start][0], apart[stop - 1][1]) for start, stop in zip(edges, edges[1:])]


def _is_above(one: Bound, other: Bound) -> bool:
    return one > other  # type: ignore[operator]


def _gap(low: Bound, high: Bound) -> int | None:
    """The distance of two numbers, or of two dates in days; ``None`` for texts."""
    if isinstance(low, int) and isinstance(high, int):
        return high - low
    if isinstance(low, date) and isinstance(high, date):
        return (high - low).days
    return None
