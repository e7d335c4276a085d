"""Writes key sets in the metastore's filter language.

This is the language as Hive 2.3 parses it: ``(column) in (...)`` with the parentheses, text in
double quotes without any escape, integers without quotes, no ``IS NULL``, and dates as text, not as
``DATE '...'``.

Integers and dates are compared by ranges: for ``=`` and ``in``, Hive 4 compares them as texts, and
would not find the partition ``n=08`` for the key 8. Keys in a row are one range.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from airflow_hive_opt.metastores.metastore import KeySet
from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.types import family

# For earlier years, the metastore uses another calendar.
_FIRST_YEAR = 1583
# An embedded Derby's stack overflows at about 600 values; Oracle's limit is 1,000. A range has two.
VALUES_A_FILTER = 400

_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f]+')
_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def filters(columns: Sequence[Column], keys: Sequence[KeySet]) -> list[str] | None:
    """Filters whose results together contain the wanted partitions, or ``None`` if impossible.

    The largest key set is split into pieces of a size that servers accept; every filter has one
    piece and all the other key sets. Three cases have no filter and are matched locally: types that
    the metastore does not compare as Spark does, text that the language can't quote, and two large
    key sets at once.

    >>> two = (Column("a", "string"), Column("n", "int"))
    >>> filters(two, [((0, 1), frozenset({("x", 1), ("x", 2)}))])
    ['((a = "x") and (n >= 1 and n <= 2))']
    >>> filters(two, [((0,), frozenset({("x",)})), ((1,), frozenset({(3,), (5,)}))])
    ['((n >= 3 and n <= 3) or (n >= 5 and n <= 5)) and ((a) in ("x"))']
    >>> filters(two, [((0,), frozenset({('"',)}))])
    >>> filters((Column("d", "date"),), [((0,), frozenset({(date(1500, 1, 1),)}))])
    """
    if not all(_expressible(columns, *found) for found in keys):
        return None
    *others, (positions, tuples) = sorted(keys, key=lambda found: len(found[1]))
    room = VALUES_A_FILTER - sum(len(rows) * _values_a_row(columns, at) for at, rows in others)
    if room < VALUES_A_FILTER // 2:
        return None
    rest = [f" and ({_condition(columns, at, sorted(rows))})" for at, rows in others]
    pieces = _pieces(sorted(tuples), _values_a_row(columns, positions), room)
    conditions = (_condition(columns, positions, piece) for piece in pieces)
    return [f"({text}){''.join(rest)}" if rest else text for text in conditions]


def _pieces(
    rows: Sequence[tuple[Value, ...]], values_a_row: int, room: int
) -> Iterator[Sequence[tuple[Value, ...]]]:
    """The sorted rows, in pieces whose conditions have at most ``room`` values.

    >>> [len(piece) for piece in _pieces([(1,), (2,), (3,), (5,), (7,)], 2, 4)]
    [4, 1]
    """
    start = used = 0
    for at, row in enumerate(rows):
        follows = at > start and len(row) == 1 and row[0] == _next(rows[at - 1][0])
        needed = 0 if follows else values_a_row
        if used + needed > room:
            yield rows[start:at]
            start, used, needed = at, 0, values_a_row
        used += needed
    yield rows[start:]


def _values_a_row(columns: Sequence[Column], positions: Sequence[int]) -> int:
    """The values that a filter has for a tuple of keys, if no two are in one range."""
    return sum(1 if columns[at].type == "string" else 2 for at in positions)


def _expressible(
    columns: Sequence[Column], positions: Sequence[int], tuples: Iterable[tuple[Value, ...]]
) -> bool:
    return all(
        family(columns[at].type) and _NAME.fullmatch(columns[at].name) for at in positions
    ) and all(_plain(value) for row in tuples for value in row)


def _condition(
    columns: Sequence[Column], positions: Sequence[int], rows: Sequence[tuple[Value, ...]]
) -> str:
    """A condition on the columns; several columns are grouped by the leading ones."""
    name = columns[positions[0]].name
    if len(positions) == 1:
        return _one_of(name, [row[0] for row in rows])
    groups: dict[Value, list[tuple[Value, ...]]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row[1:])
    return " or ".join(
        f"(({_equal(name, value)}) and ({_condition(columns, positions[1:], rest)}))"
        for value, rest in groups.items()
    )


def _one_of(name: str, values: Sequence[Value]) -> str:
    """True for the sorted ``values`` of a column.

    >>> _one_of("n", [1, 2, 5])
    '(n >= 1 and n <= 2) or (n >= 5 and n <= 5)'
    """
    if isinstance(values[0], str):
        return f"({name}) in ({', '.join(map(_literal, values))})"
    ends: list[list[Value]] = []
    for value in values:
        if ends and value == _next(ends[-1][1]):
            ends[-1][1] = value
        else:
            ends.append([value, value])
    ranges = [_between(name, *each) for each in ends]
    return ranges[0] if len(ranges) == 1 else " or ".join(f"({each})" for each in ranges)


def _equal(name: str, value: Value) -> str:
    return f"{name} = {_literal(value)}" if isinstance(value, str) else _between(name, value, value)


def _between(name: str, low: Value, high: Value) -> str:
    return f"{name} >= {_literal(low)} and {name} <= {_literal(high)}"


def _next(value: Value) -> Value | None:
    if isinstance(value, date):
        return value + timedelta(1) if value < date.max else None
    return value + 1 if isinstance(value, int) else None


def _plain(value: Value) -> bool:
    if isinstance(value, date):
        return value.year >= _FIRST_YEAR
    return not isinstance(value, str) or _TEXT.fullmatch(value) is not None


def _literal(value: Value) -> str:
    return str(value) if isinstance(value, int) else f'"{value}"'
