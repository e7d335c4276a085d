"""Partitions as the metastore names them, and their values as the table types them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Optional, Union
from urllib.parse import unquote

from airflow_hive_opt.statement.types import INTEGER_BITS, family

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class CastText:
    """A value that is what Spark makes of a text, for types that Python reads otherwise."""

    text: str
    type: str


Value = Union[int, str, date, CastText]
"""A typed, non-NULL partition value or key."""

_CASTABLE = re.compile(r"boolean|decimal(\(.*\))?|timestamp|varchar\(.*\)")


@dataclass(frozen=True)
class Partition:
    """A partition: its values in column order, as the metastore has them, ``None`` for NULL.

    ``location``, ``rows`` and ``bytes`` are ``None`` where the metastore was not asked.
    """

    values: tuple[Optional[str], ...]
    location: Optional[str] = None
    rows: Optional[int] = None
    bytes: Optional[int] = None


def parse_name(name: str) -> Partition:
    """The partition that a metastore name stands for.

    >>> parse_name("ds=a%2Fb c/n=__HIVE_DEFAULT_PARTITION__").values
    ('a/b c', None)
    """
    return Partition(tuple(value_of(unquote(part.partition("=")[2])) for part in name.split("/")))


def value_of(text: str) -> str | None:
    """A metastore value, ``None`` for the default partition's."""
    return None if text == DEFAULT_PARTITION else text


def comparable(type_: str) -> bool:
    """Whether a scan's value of this type is its name's text, cast.

    CHAR pads, Spark refuses conditions on a TIMESTAMP_NTZ partition, a BINARY's text is no cast of
    it, and FLOAT and DOUBLE have two zeros.

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
    """The value as the table types it, or ``None`` where the text is seen to be no such value.

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


def matching(
    partitions: Iterable[Partition],
    types: Sequence[str],
    keys: Iterable[tuple[Sequence[int], frozenset[tuple[Value, ...]]]],
    null_is_text: bool = False,
) -> Iterator[Partition]:
    """The partitions that every key set calls for.

    ``types`` are the partition columns' types; each of ``keys`` has the positions of the columns
    it speaks of and the tuples wanted there. NULL equals nothing, unless ``null_is_text``: then it
    is the NULL partition's name. A value that can't be read as its type is kept: Spark will judge
    it.
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
