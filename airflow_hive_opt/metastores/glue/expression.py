"""Writes key sets as expressions of AWS Glue's GetPartitions.

An expression has at most 2,048 bytes, so many keys need several expressions. Glue compares a value
as its column's type and answers with an error if one partition's value is not of that type. A
comparison is left out if Glue might find fewer partitions by it than Spark: the caller compares the
partitions that it gets once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Optional

from airflow_hive_opt.metastores.metastore import KeySet
from airflow_hive_opt.metastores.partitions import CastText, Value
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.types import family
from airflow_hive_opt.statement.zip_strict import zip_strict

LONGEST = 2_048
"""The longest expression that Glue accepts, in bytes of UTF-8."""
# A longer value is not compared, so that an expression has room for it and for another one.
_LONGEST_LITERAL = 500

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
# No quote, no backslash, no control character, and none that a request can't have.
_TEXT = re.compile("[^'\"\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]+")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})?")
# Glue's parser reads these as keywords, never as columns.
_KEYWORD = re.compile(
    "all|and|any|asc|as|begin|between|by|case|create|delete|desc|distinct|do|drop|else|end|escape|"
    "exists|from|full|group|having|index|inner|insert|intersect|into|in|is|join|key|left|like|limit|"
    "natural|not|null|offset|on|open|order|or|outer|primary|replace|right|select|set|some|table|"
    "then|top|truncate|union|update|using|values|when|where|with"
)

_Row = tuple[Optional[str], ...]  # literals; None if the column is not compared


def expressions(columns: Sequence[Column], keys: Sequence[KeySet]) -> list[str] | None:
    """Expressions whose results together contain the wanted partitions, and perhaps others.

    ``None`` if no expression excludes any partition. The largest key set is split into pieces. The
    other key sets are in every expression, as far as there is room.

    >>> two = (Column("a", "string"), Column("n", "int"))
    >>> expressions(two, [((0, 1), frozenset({("x", 1), ("x", 2), ("y", 3)}))])
    ["(a = 'x' AND n IN (1, 2)) OR (a = 'y' AND n = 3)"]
    >>> expressions(two, [((0,), frozenset({("x",)})), ((1,), frozenset({(3,), (4,)}))])
    ["(a = 'x') AND (n IN (3, 4))"]
    >>> expressions(two, [((0, 1), frozenset({("it's", 1), ("it's", 2)}))])
    ['n IN (1, 2)']
    >>> expressions(two, [((0,), frozenset({("it's",)}))]) is None
    True
    """
    sets = []
    for positions, tuples in keys:
        own = [columns[at] for at in positions]
        rows = sorted({_row(own, values) for values in tuples}, key=repr)
        if _condition(own, rows) is not None:
            sets.append((own, rows))
    if not sets:
        return None
    *others, (own, rows) = sorted(sets, key=lambda found: len(found[1]))
    room, rest = LONGEST - len("()"), ""
    for columns_there, rows_there in others:
        text = f"({_condition(columns_there, rows_there)}) AND "
        if _length(text) <= room // 2:
            rest, room = rest + text, room - _length(text)
    pieces = _pieces(own, rows, room)
    if pieces is None:
        return None
    return [f"{rest}({text})" if rest else text for text in pieces]


def _pieces(columns: Sequence[Column], rows: Sequence[_Row], room: int) -> list[str] | None:
    """Conditions of at most ``room`` bytes that together hold for all rows."""
    whole = _condition(columns, rows)
    if whole is not None and _length(whole) <= room:
        return [whole]
    pieces = []
    start = 0
    while start < len(rows):
        text, step = None, 1
        while (found := _fitting(columns, rows[start : start + step], room)) is not None:
            text, taken = found, min(step, len(rows) - start)
            if taken < step:
                break
            step *= 2
        if text is None:
            return None
        low, high = taken, min(step, len(rows) - start + 1)
        while high - low > 1:
            middle = (low + high) // 2
            found = _fitting(columns, rows[start : start + middle], room)
            if found is None:
                high = middle
            else:
                text, low = found, middle
        pieces.append(text)
        start += low
    return pieces


def _fitting(columns: Sequence[Column], rows: Sequence[_Row], room: int) -> str | None:
    text = _condition(columns, rows)
    return text if text is not None and _length(text) <= room else None


def _condition(columns: Sequence[Column], rows: Sequence[_Row]) -> str | None:
    """A condition that holds for all rows; ``None`` if it holds for every partition.

    First values whose rows are otherwise the same become one IN list.
    """
    name = columns[0].name
    if len(columns) == 1:
        return _is_in(name, [row[0] for row in rows])
    behind: dict[str | None, dict[_Row, None]] = {}
    for row in rows:
        behind.setdefault(row[0], {})[row[1:]] = None
    groups: dict[tuple[_Row, ...], list[str | None]] = {}
    for value, others in behind.items():
        groups.setdefault(tuple(others), []).append(value)
    terms = []
    for others_there, values in groups.items():
        rest = _condition(columns[1:], others_there)
        if rest is not None and len(others_there) > 1 and len(columns) > 2:
            rest = f"({rest})"
        own = _is_in(name, values)
        parts = [part for part in (own, rest) if part is not None]
        if not parts:
            return None
        terms.append(" AND ".join(parts))
    return terms[0] if len(terms) == 1 else " OR ".join(f"({term})" for term in terms)


def _is_in(name: str, values: Sequence[str | None]) -> str | None:
    literals = [value for value in values if value is not None]
    if len(literals) < len(values):
        return None
    if len(literals) == 1:
        return f"{name} = {literals[0]}"
    return f"{name} IN ({', '.join(literals)})"


def _row(columns: Sequence[Column], values: Sequence[Value]) -> _Row:
    return tuple(_literal(column, value) for column, value in zip_strict(columns, values))


def _literal(column: Column, value: Value) -> str | None:
    """The value in an expression, or ``None`` if the column can't be compared with it.

    A decimal or a timestamp has none: in Glue it equals other texts too.
    """
    if not _NAME.fullmatch(column.name) or _KEYWORD.fullmatch(column.name):
        return None
    kind = family(column.type) or column.type.partition("(")[0]
    text = None
    if isinstance(value, CastText):
        if kind == "decimal" and _DECIMAL.fullmatch(value.text):
            text = value.text
        if kind == "timestamp" and _TIMESTAMP.fullmatch(value.text):
            text = f"'{value.text}'"
    elif isinstance(value, int):
        text = str(value) if kind == "integer" else None
    elif isinstance(value, date):
        text = f"'{value.isoformat()}'" if kind == "date" else None
    elif kind == "string" and _TEXT.fullmatch(value):
        text = f"'{value}'"
    return text if text is None or _length(text) <= _LONGEST_LITERAL else None


def _length(text: str) -> int:
    return len(text.encode())
