"""A table's buckets, and the distinct values that ANALYZE TABLE found, from Spark's catalog."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.statement.catalog import Buckets

if TYPE_CHECKING:
    from airflow_hive_opt.statement.catalog import Table

# These parse the JVM objects' text: reading every column by JVM calls takes longer.
_COLUMN = re.compile(r"(?:Map\d*\(|, )([^,()]+) -> CatalogColumnStat\(Some\((\d+)\)")
_BUCKETS = re.compile(
    r"Some\((\d+) buckets, bucket columns: \[(.*?)\](?:, sort columns: \[(.*?)\])?\)"
)


def with_statistics(table: Table, metadata: Any) -> Table:
    """The table with its buckets and the number of distinct values of its columns, if known.

    ``metadata`` is the JVM's ``CatalogTable``.
    """
    statistics = metadata.stats()
    columns = str(statistics.get().colStats().toString()) if statistics.isDefined() else ""
    buckets = buckets_in(str(metadata.bucketSpec().toString()))
    if buckets is not None:
        buckets = replace(buckets, by_spark=metadata.provider().getOrElse(None) != "hive")
    return replace(table, distinct=distinct_in(columns), buckets=buckets)


def distinct_in(text: str) -> tuple[tuple[str, int], ...]:
    """Column names in lower case with their number of distinct values, from Spark's text of a map.

    >>> distinct_in("Map(k -> CatalogColumnStat(Some(7),Some(0)), V -> CatalogColumnStat(None))")
    (('k', 7),)
    """
    return tuple((name.lower(), int(count)) for name, count in _COLUMN.findall(text))


def buckets_in(text: str) -> Buckets | None:
    """The buckets in Spark's text of an ``Option[BucketSpec]``; ``None`` if it has none.

    >>> buckets_in("Some(2 buckets, bucket columns: [a, b], sort columns: [a])")
    Buckets(columns=('a', 'b'), count=2, sort=(('a', 'asc'),), by_spark=False)
    >>> buckets_in("None")
    """
    found = _BUCKETS.fullmatch(text)
    if found is None:
        return None
    columns, sort = (
        tuple(name.lower() for name in (names or "").split(", ") if name)
        for names in found.group(2, 3)
    )
    return Buckets(columns, int(found[1]), tuple((name, "asc") for name in sort))
