"""The types that keys of an index can have, and their values in Arrow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Optional, Union

from airflow_hive_opt.documents.storage import DescriptorError
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    import pyarrow as pa

Key = Union[int, str, date]
"""A whole number, a text or a date, which has no time."""

_CLASSES: dict[str, type] = {"integer": int, "string": str, "date": date}
_EPOCH = date(1970, 1, 1)


def is_indexable(type_: str) -> bool:
    """Whether keys can have the type, which is Spark's name in lower case.

    >>> is_indexable("bigint"), is_indexable("double"), is_indexable("char(3)")
    (True, False, False)
    """
    return family(type_) is not None


def arrow_type(type_: str) -> pa.DataType:
    """Arrow's type of the keys of a type.

    All whole numbers are 64 bits wide, so that an index stays valid if a column gets wider. Texts
    are bytes, because a data file may have bytes that are no UTF-8.
    """
    import pyarrow as pa

    return {"integer": pa.int64(), "string": pa.large_binary(), "date": pa.date32()}[
        family(type_) or ""
    ]


def as_array(keys: Sequence[Key], type_: str) -> pa.Array:
    """The distinct keys in ascending order; raises :class:`DescriptorError` for another type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    expected = _CLASSES[family(type_) or ""]
    for key in keys:
        if type(key) is not expected:
            raise DescriptorError(
                f"a key is of the class {type(key).__name__}, which is no {type_}"
            )
    try:
        values = [key.encode() if isinstance(key, str) else key for key in keys]
        found = pc.unique(pa.array(values, arrow_type(type_)))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise DescriptorError(f"a key is no {type_}: {error}") from error
    return found.take(pc.array_sort_indices(found))


def ordinal(key: object) -> Optional[int]:
    """A whole number, or a date as days since 1970; ``None`` for a text.

    >>> ordinal(7), ordinal(date(1970, 1, 3)), ordinal(b"a")
    (7, 2, None)
    """
    if isinstance(key, date):
        return (key - _EPOCH).days
    return key if isinstance(key, int) else None


def has_between(ascending: Sequence[Any], lowest: Any, highest: Any) -> bool:
    """Whether a value of the sequence is from ``lowest`` to ``highest``.

    >>> has_between([1, 9], 2, 8), has_between([1, 9], 2, 9), has_between([], 1, 2)
    (False, True, False)
    """
    at = bisect_left(ascending, lowest)
    return at < len(ascending) and bool(ascending[at] <= highest)
