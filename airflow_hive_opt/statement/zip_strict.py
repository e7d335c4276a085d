"""``zip(..., strict=True)`` for Python 3.9, which does not have that argument."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

_First = TypeVar("_First")
_Second = TypeVar("_Second")


@overload
def zip_strict(
    first: Iterable[_First], second: Iterable[_Second], /
) -> Iterator[tuple[_First, _Second]]: ...
@overload
def zip_strict(*columns: Iterable[_First]) -> Iterator[tuple[_First, ...]]: ...
def zip_strict(*columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of columns of equal length; raises ``ValueError`` if the lengths differ.

    >>> list(zip_strict([1, 2], "ab"))
    [(1, 'a'), (2, 'b')]
    >>> zip_strict([1, 2], "a")
    Traceback (most recent call last):
    ValueError: zip_strict() has columns of different lengths
    """
    lists = [list(column) for column in columns]
    if len(set(map(len, lists))) > 1:
        raise ValueError("zip_strict() has columns of different lengths")
    return zip(*lists)
