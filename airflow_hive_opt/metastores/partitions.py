"""Partitions with the metastore's values, and the conversion of values to their types."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Optional, Union
from urllib.parse import unquote

from airflow_hive_opt.statement.types import INTEGER_BITS, family
from airflow_hive_opt.statement.zip_strict import zip_strict

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class CastText:
    """Spark's cast of ``text`` to ``type``, for types that Python parses differently."""

    text: str
    type: str


Value = Union[int, str, date, CastText]
"""A typed, non-NULL partition value or key."""

_CASTABLE = re.compile(r"boolean|decimal(\(.*\))?|timestamp|varchar\(.*\)")


@dataclass(frozen=True)
class Partition:
    """A partition: its values in column order, as in the metastore, with ``None`` for NULL.

    ``location``, ``rows`` and ``bytes`` are ``None`` if they are not known.
    """

    values: tuple[Optional[str], ...]
    location: Optional[str] = None
    rows: Optional[int] = None
    bytes: Optional[int] = None


def parse_name(name: str) -> Partition:
    """Parses a partition name of the metastore.

    >>> parse_name("ds=a%2Fb c/n=__HIVE_DEFAULT_PARTITION__").values
    ('a/b c', None)
    """
    return Partition(tuple(value_of(unquote(part.partition("=")[2])) for part in name.split("/")))


def value_of(text: str) -> str | None:
    """The value for a metastore's text: ``None`` for the default partition, else the text."""
    return None if text == DEFAULT_PARTITION else text


def comparable(type_: str) -> bool:
    """Whether a scan's partition value of this type is a cast of the text in the partition name.

    It is not for some types: CHAR pads values, Spark rejects conditions on a TIMESTAMP_NTZ
    partition column, the text of a BINARY is not a cast of it, and FLOAT and DOUBLE have two zeros.

    >>> comparable("date"), comparable("decimal(5,2)"), comparable("char(3)")
    (True, True, False)
    """
    return family(type_) is not None or _CASTABLE.fullmatch(type_) is not None


def fits(value: Value, type_: str) -> bool:
    """Whether a key can be a value of a column of this type (an INT can't hold 2**40)."""
    if isinstance(value, int) and type_ in INTEGER_BITS:
        bound = 1 << (INTEGER_BITS[type_] - 1)
        return -bound <= value < bound
    return True


def typed(text: str, type_: str) -> Value | None:
    """Converts a text to a value of the type, or ``None`` if it is not such a value.

    >>> typed("08", "int"), typed("2020-01-31", "date"), typed("x", "int")
    (8, datetime.date(2020, 1, 31), None)
    """
    try:
        if family(type_) == "integer":
            return int(text)
        if type_ == "date":
            return date.fromisoformat(text)
        return text if type_ == "string" else CastText(text, type_)
    except ValueError:
        return None


def are_usual(partitions: Iterable[Partition], types: Sequence[str]) -> bool:
    """Whether all values are texts as Spark writes them; ``08`` is not for an integer column.

    Spark passes ``=`` and IN on to the metastore, and Hive 4 compares the texts there.

    >>> are_usual([Partition(("8", "08"))], ["int", "string"])
    True
    >>> are_usual([Partition(("08",))], ["int"])
    False
    """
    return all(
        text is None
        or isinstance(value := typed(text, type_), (str, CastText))
        or str(value) == text
        for partition in partitions
        for text, type_ in zip_strict(partition.values, types)
    )


def typed_row(partition: Partition, types: Sequence[str]) -> tuple[Value | None, ...] | None:
    """The partition's values as their columns' types; ``None`` if one of them is not such a value.

    >>> typed_row(Partition(("08", None)), ["int", "string"])
    (8, None)
    >>> typed_row(Partition(("x",)), ["int"])
    """
    row = []
    for text, type_ in zip_strict(partition.values, types):
        value = None if text is None else typed(text, type_)
        if value is None and text is not None:
            return None
        row.append(value)
    return tuple(row)


def digest_of_values(partitions: Iterable[Partition]) -> str:
    """SHA-256 of the values of all partitions, in any order, in hexadecimal."""
    rows = sorted(json.dumps(partition.values) for partition in partitions)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def matching(
    partitions: Iterable[Partition],
    types: Sequence[str],
    keys: Iterable[tuple[Sequence[int], frozenset[tuple[Value, ...]]]],
    null_is_text: bool = False,
) -> Iterator[Partition]:
    """The partitions that match every key set.

    ``types`` are the partition columns' types. Each of ``keys`` has positions of partition columns
    and the tuples of values wanted there. NULL equals nothing. If ``null_is_text`` is true, its
    value is instead the name of the NULL partition. A partition with a value that can't be
    converted to its type is kept: Spark decides about it.
    """
    wanted = list(keys)
    for partition in partitions:
        texts = partition.values
        if null_is_text:
            texts = tuple(DEFAULT_PARTITION if text is None else text for text in texts)
        if all(_matches(texts, types, at, tuples) for at, tuples in wanted):
            yield partition


def _matches(
    texts: Sequence[str | None],
    types: Sequence[str],
    positions: Sequence[int],
    tuples: frozenset[tuple[Value, ...]],
) -> bool:
    values: list[Value] = []
    readable = True
    for position in positions:
        text = texts[position]
        if text is None:
            return False
        value = typed(text, types[position])
        if value is None:
            readable = False
        else:
            values.append(value)
    return not readable or tuple(values) in tuples
