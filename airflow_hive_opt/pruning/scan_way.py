"""How Spark will find the partitions of a scan: which way at which number of partitions.

``spark/scan.py`` goes these ways and says what they are; docs/metastore.md has the figures that the
numbers come from.
"""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum

VALUES_A_SCAN = 200
"""An IN list of so many values is handed to the metastore."""
# Up to so many partitions no choice matters.
_FEW = 1_000
_NAMED_UP_TO = 0.3
_NARROWED_UP_TO = 0.9


class Way(StrEnum):
    """How Spark finds a scan's partitions: by a filter, by their names, or all of them at once."""

    FILTER = "filter"
    NAMES = "names"
    WHOLE = "whole"


WAYS = (
    f"Spark finds them by {Way.FILTER} up to {VALUES_A_SCAN} values, by {Way.NAMES} up to "
    f"{_FEW:,} partitions or {_NAMED_UP_TO:.0%} of all, else as a {Way.WHOLE}; not narrowed above "
    f"{_NARROWED_UP_TO:.0%}"
)
"""The rule in words; which it will be is known once keys are read."""


def way_for(values: int, plain: bool, partitions: int, total: int) -> Way:
    """How to find ``partitions`` of ``total``, told by so many values.

    ``plain`` says that each value means itself in a filter.

    >>> [way_for(number, True, number, 10_000).value for number in (10, 1_000, 4_000)]
    ['filter', 'names', 'whole']
    >>> way_for(1, False, 1, 10_000)
    <Way.NAMES: 'names'>
    """
    if plain and values <= VALUES_A_SCAN:
        return Way.FILTER
    return Way.WHOLE if partitions > max(_FEW, _NAMED_UP_TO * total) else Way.NAMES


def is_worth_narrowing(kept: int, total: int) -> bool:
    """Whether a list of ``kept`` of ``total`` partitions saves more than telling it costs.

    >>> is_worth_narrowing(9_000, 10_000), is_worth_narrowing(9_900, 10_000)
    (True, False)
    >>> is_worth_narrowing(99, 100)
    True
    """
    return kept < total and (kept <= _FEW or kept <= _NARROWED_UP_TO * total)
