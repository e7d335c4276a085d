"""``zip(..., strict=True)`` for Python 3.9, which does not have that argument."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeVar, overload

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Missing: Any = object()


@overload
def zip_strict(
    first: Iterable[_First], second: Iterable[_Second], /
) -> Iterator[tuple[_First, _Second]]: ...
@overload
def zip_strict(*columns: Iterable[_First]) -> Iterator[tuple[_First, ...]]: ...
def zip_strict(*columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of columns of equal length; raises ``ValueError`` if the lengths differ."""
    return zip(*columns, strict=True) if sys.version_info >= (3, 10) else _rows(columns)


def _rows(columns: tuple[Iterable[Any], ...]) -> Iterator[tuple[Any, ...]]:
    """Does the same as ``zip(..., strict=True)`` of Python 3.10.

    >>> list(_rows(([1, 2], "ab")))
    [(1, 'a'), (2, 'b')]
    >>> list(_rows(([1, 2], "a")))
    Traceback (most recent call last):
    ValueError: zip_strict() has columns of different lengths
    """
    for row in zip_longest(*columns, fillvalue=_Missing):
        if any(value is _Missing for value in row):
            raise ValueError("zip_strict() has columns of different lengths")
        yield row
