"""Decides by the number of partitions how Spark finds the partitions of a scan.

``restriction/list_condition.py`` describes the ways. The numbers come from the
measurements in docs/how-it-works/metastore.md.
"""

from __future__ import annotations

from airflow_hive_opt.statement.text_enum import StrEnum

VALUES_A_SCAN = 200
"""The longest IN list, in values, that Spark passes to the metastore."""
FILTER_ON_GLUE = 1_500
"""The longest filter for AWS Glue, in bytes: 2,048 less room for the statement's own predicates."""
# In partitions. Up to this number, all ways take about the same time.
_FEW = 1_000
_NAMED_UP_TO = 0.3
_RESTRICTED_UP_TO = 0.9


class Way(StrEnum):
    """How Spark fetches a scan's partitions.

    By a filter, by their names, those of a range of values, or all at once.
    """

    FILTER = "filter"
    NAMES = "names"
    RANGE = "range"
    WHOLE = "whole"

    @property
    def cost(self) -> str:
        """What Spark fetches, for the log."""
        return _COSTS[self]


_COSTS = {
    Way.FILTER: "it fetches the listed partitions in one call",
    Way.NAMES: "it fetches all names, and the listed partitions",
    Way.RANGE: "it fetches every partition between the smallest and the largest value",
    Way.WHOLE: "it fetches every partition of the table",
}

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


def way_on_glue(filter_bytes: int | None, has_range: bool) -> Way:
    """The way if the metastore is AWS Glue, which limits the length of a filter.

    ``filter_bytes`` is the length of the filter that Spark makes of the list, ``None`` if it can't.
    ``has_range`` says that a range of values contains the list. Names are no way: Glue has no call
    for them, so AWS's client fetches every partition to list them.

    >>> way_on_glue(800, True), way_on_glue(8_000, True), way_on_glue(None, False)
    (<Way.FILTER: 'filter'>, <Way.RANGE: 'range'>, <Way.WHOLE: 'whole'>)
    """
    if filter_bytes is not None and filter_bytes <= FILTER_ON_GLUE:
        return Way.FILTER
    return Way.RANGE if has_range else Way.WHOLE


def is_worth_pruning(kept: int, total: int) -> bool:
    """Whether pruning to ``kept`` of ``total`` partitions saves more than the list costs.

    >>> is_worth_pruning(9_000, 10_000), is_worth_pruning(9_900, 10_000)
    (True, False)
    >>> is_worth_pruning(99, 100)
    True
    """
    return kept < total and (kept <= _FEW or kept <= _RESTRICTED_UP_TO * total)
