"""Writes the condition for a scan's partitions so that Spark finds them most cheaply.

Spark asks its metastore for the partitions of a scan by the conditions on partition columns. By
default it turns an IN list above ``spark.sql.hive.metastorePartitionPruningInSetThreshold`` into a
range. It fetches every partition if the metastore's filter language can't express the condition.
A scan's partitions are looked up in one of four ways:

- by *filter*: a few values as an IN list, which the metastore evaluates;
- by *names*: more values, in a form that Spark can't pass to the metastore. With
  ``spark.sql.hive.metastorePartitionPruningFastFallback`` Spark then evaluates the condition on the
  partitions' names and fetches the matching ones by name. If the statement has another predicate
  that a filter can express, Spark passes that one on and fetches its partitions instead;
- by a *range*, on AWS Glue alone: the range of the values as a filter, and more values than a
  filter can have in a form that Spark can't pass on;
- as a *whole*: above three tenths of all partitions, one call for every partition costs no more
  than fetching so many by name. The condition still prevents Spark from listing and reading the
  other partitions.

:mod:`~airflow_hive_opt.pruning.scan_way` chooses the way by the number of partitions. On AWS
Glue it chooses by the length of the filter: listing names there fetches every partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.pruning.scan_way import Way, way_for, way_on_glue
from airflow_hive_opt.restriction.literals import (
    is_plain,
    literal,
    names_condition,
    range_condition,
    tuples_condition,
)
from airflow_hive_opt.statement.zip_strict import zip_strict


def cheapest_way(
    columns: Sequence[str],
    rows: Collection[Sequence[Value | None]],
    total: int,
    on_glue: bool = False,
    usual: bool = True,
) -> Way:
    """The cheapest way to find these partitions of a table with ``total`` partitions.

    ``on_glue`` says that the metastore is AWS Glue. ``usual`` says that the partitions' names have
    the values as Spark writes them: a filter of a Hive 4 metastore does not find others.

    >>> cheapest_way(["ds"], [(None,)], 10_000)
    <Way.NAMES: 'names'>
    >>> days = [(f"2024-01-{day:02}",) for day in range(1, 101)]
    >>> cheapest_way(["ds"], days, 10_000)
    <Way.FILTER: 'filter'>
    >>> cheapest_way(["ds"], days, 10_000, on_glue=True)
    <Way.RANGE: 'range'>
    """
    plain = all(value is not None and is_plain(value) for row in rows for value in row)
    if not on_glue:
        return way_for(sum(map(len, rows)), plain and usual, len(rows), total)
    filter_bytes = _filter_bytes(columns, rows) if plain else None
    return way_on_glue(filter_bytes, range_condition("", columns, rows) is not None)


def _filter_bytes(columns: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> int:
    """The greatest length of the filter that Spark makes: ``((a = "x" and b = 1) or ...)``."""
    return sum(
        len(name.encode()) + len(literal(value).encode()) + len("(  =  and )")
        for row in rows
        for name, value in zip_strict(columns, row)
    )


def list_condition(
    alias: str,
    columns: Sequence[str],
    rows: Collection[Sequence[Value | None]],
    way: Way,
) -> str:
    """The condition for the partitions with these values, so that Spark finds them by ``way``.

    >>> list_condition("s", ["ds"], [("a",), ("b",)], Way.FILTER)
    "`s`.`ds` IN ('a', 'b')"
    >>> list_condition("s", ["ds"], [("a",), (None,)], Way.NAMES)
    "concat(`s`.`ds`, '') IN ('a') OR `s`.`ds` IS NULL"
    """
    if way is Way.FILTER:
        return tuples_condition(alias, columns, rows)
    condition = names_condition(alias, columns, rows)
    if way is Way.RANGE:
        return f"{range_condition(alias, columns, rows)} AND ({condition})"
    return condition
