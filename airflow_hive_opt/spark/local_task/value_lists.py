"""Turns keys into conditions on the columns by which a table groups its files.

The table's own metadata, such as Iceberg's, then finds the files. It evaluates a list of up to 200
values on the lowest and highest value of each file, and a longer one on partition values only. Many
keys therefore become ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Union

from airflow_hive_opt.pruning.decisions import Alternative, KeySource, ScanDecision
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.runtime.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.spark.keys.key_set import Keys
from airflow_hive_opt.statement.identifiers import quote

MOST_VALUES = 200
MOST_RANGES = 100
# Spark puts it in place of bytes that are no UTF-8, so that different values have the same text.
_REPLACEMENT = "\ufffd"

_Ordered = Union[int, str, date]
# The source's column that a column of the scan equals, and its values.
_Equal = tuple[KeySource, int, frozenset[_Ordered]]


def value_filters(
    decision: ScanDecision, keys_of: Callable[[KeySource], Keys | Reason], merged: str | None = None
) -> tuple[RowFilter, ...] | Reason:
    """The conditions on the scan, one for each restricted column, or why there are none.

    ``keys_of`` collects the keys of a source. ``merged`` is the alias of MERGE's source if the scan
    is its target. A scan with several alternatives reads the values of all of them.
    """
    relation = decision.relation
    if relation is None:
        return decision.reason
    types = {column.name: column.type for column in decision.table.pruning_columns}
    failures: list[Reason] = []
    found = [_equalities(each, keys_of, types, failures) for each in decision.alternatives]
    filters = [
        _row_filter(relation, name, column.type, [each[column.name] for each in found], merged)
        for name, column in relation.table.visible_pruning_columns
        if all(column.name in each for each in found)
    ]
    if filters:
        return tuple(filters)
    return failures[0] if failures else Reason.KEYS_NOT_COMPARED_AS_COLUMNS


def _equalities(
    alternative: Alternative,
    keys_of: Callable[[KeySource], Keys | Reason],
    types: dict[str, str],
    failures: list[Reason],
) -> dict[str, _Equal]:
    """By column of the scan, the key column that it equals; the one with the fewest values."""
    found: dict[str, _Equal] = {}
    for source in alternative.sources:
        keys = keys_of(source)
        if isinstance(keys, Reason):
            failures.append(keys)
            continue
        rows = keys.tuples([types[column] for column in source.partition_columns])
        if rows is None:
            failures.append(Reason.TYPE_NOT_COMPARABLE)
            continue
        for at, column in enumerate(source.partition_columns):
            values = frozenset(
                value for value in (row[at] for row in rows) if isinstance(value, (int, str, date))
            )
            if any(isinstance(value, str) and _REPLACEMENT in value for value in values):
                failures.append(Reason.TYPE_NOT_COMPARABLE)
            elif column not in found or len(values) < len(found[column][2]):
                found[column] = source, at, values
    return found


def _row_filter(
    relation: TableRelation, name: str, type_: str, equal: Sequence[_Equal], merged: str | None
) -> RowFilter:
    values = sorted(frozenset[_Ordered]().union(*(each[2] for each in equal)))
    is_range = len(values) > MOST_VALUES
    if is_range:
        values = [end for range_ in ranges(values) for end in range_]
    source, at, _ = equal[0]
    guarded = merged is not None and source.aliases == (merged,)
    column = source.columns[at]
    return RowFilter(
        relation.alias,
        relation.table.name,
        relation.text,
        relation.aliased,
        (relation.reference.start, relation.reference.stop),
        name,
        type_,
        tuple(map(str, values)),
        is_range,
        SourceKeys(source.aliases, source.name, source.sql, len(values)),
        guard=f"{quote(column.alias)}.{quote(column.name)}" if guarded else None,
        guarded=source.asked_sql if guarded else (),
    )


def ranges(values: Sequence[_Ordered]) -> list[tuple[_Ordered, _Ordered]]:
    """At most :data:`MOST_RANGES` ranges that contain all of the sorted ``values``.

    Numbers and dates are separated at the widest gaps. Texts, whose distance is not known, are
    separated into ranges of the same number of values.

    >>> ranges([1, 2, 3, 9])
    [(1, 3), (9, 9)]
    >>> ranges(["a", "b"])
    [('a', 'a'), ('b', 'b')]
    """
    gaps = [_gap(low, high) for low, high in zip(values, values[1:])]
    if any(gap is None for gap in gaps):
        size = -(-len(values) // MOST_RANGES)
        starts = list(range(size, len(values), size))
    else:
        widest = sorted(range(len(gaps)), key=lambda at: -(gaps[at] or 0))[: MOST_RANGES - 1]
        starts = sorted(at + 1 for at in widest if (gaps[at] or 0) > 1)
    edges = [0, *starts, len(values)]
    return [(values[start], values[stop - 1]) for start, stop in zip(edges, edges[1:])]


def _gap(low: _Ordered, high: _Ordered) -> int | None:
    """The distance of two numbers, or of two dates in days; ``None`` for texts."""
    if isinstance(low, int) and isinstance(high, int):
        return high - low
    if isinstance(low, date) and isinstance(high, date):
        return (high - low).days
    return None
