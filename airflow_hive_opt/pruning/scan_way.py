"""Decides by the number of partitions how Spark finds the partitions of a scan.

``spark/restriction/scan.py`` implements and describes the ways. The numbers come from the
measurements in docs/metastore.md.
"""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum

VALUES_A_SCAN = 200
"""The longest IN list, in values, that Spark passes to the metastore."""
# In partitions. Up to this number, all ways take about the same time.
_FEW = 1_000
_NAMED_UP_TO = 0.3
_RESTRICTED_UP_TO = 0.9


class Way(StrEnum):
    """How Spark fetches a scan's partitions: by a filter, by their names, or all at once."""

    FILTER = "filter"
    NAMES = "names"
    WHOLE = "whole"


WAYS = (
    f"Spark finds them by {Way.FILTER} up to {VALUES_A_SCAN} values, by {Way.NAMES} up to "
    f"{_FEW:,} partitions or {_NAMED_UP_TO:.0%} of all, else as a {Way.WHOLE}; unrestricted above "
    f"{_RESTRICTED_UP_TO:.0%}"
)
"""The rule in words, for plans that are made before the keys are read."""


def way_for(values: int, plain: bool, partitions: int, total: int) -> Way:
    """The way to find ``partitions`` of ``total`` partitions with a list of ``values`` values.

    ``plain`` says that every value can be written unchanged in a filter.

    >>> [way_for(number, True, number, 10_000).value for number in (10, 1_000, 4_000)]
    ['filter', 'names', 'whole']
    >>> way_for(1, False, 1, 10_000)
    <Way.NAMES: 'names'>
    """
    if plain and values <= VALUES_A_SCAN:
        return Way.FILTER
    return Way.WHOLE if partitions > max(_FEW, _NAMED_UP_TO * total) else Way.NAMES


def is_worth_pruning(kept: int, total: int) -> bool:
    """Whether pruning to ``kept`` of ``total`` partitions saves more than the list costs.

    >>> is_worth_pruning(9_000, 10_000), is_worth_pruning(9_900, 10_000)
    (True, False)
    >>> is_worth_pruning(99, 100)
    True
    """
    return kept < total and (kept <= _FEW or kept <= _RESTRICTED_UP_TO * total)
