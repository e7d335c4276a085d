"""Controls how Spark looks up the partitions of a scan.

Spark asks its metastore for the partitions of a scan by the conditions on partition columns. By
default it turns an IN list above ``spark.sql.hive.metastorePartitionPruningInSetThreshold`` into a
range. It fetches every partition if the metastore's filter language can't express the condition.
This module makes Spark look up partitions in one of four ways:

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

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from airflow_hive_opt.metastores.partitions import Value
from airflow_hive_opt.pruning.scan_way import VALUES_A_SCAN, Way, way_for, way_on_glue
from airflow_hive_opt.spark.restriction.literals import (
    is_plain,
    literal,
    names_condition,
    range_condition,
    tuples_condition,
)
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.glue import is_on_glue
from airflow_hive_opt.spark.session.session_conf import conf_set, is_set
from airflow_hive_opt.statement.zip_strict import zip_strict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_SET_THRESHOLD = "spark.sql.hive.metastorePartitionPruningInSetThreshold"
FAST_FALLBACK = "spark.sql.hive.metastorePartitionPruningFastFallback"
FALLBACK_ON_EXCEPTION = "spark.sql.hive.metastorePartitionPruningFallbackOnException"
# Parquet turns a longer list of a data column's values into a range.
PARQUET_IN_LIST = "spark.sql.parquet.pushdown.inFilterThreshold"
LISTING_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
# Spark's listing job has one task for each path, up to 10,000; that costs more than the listing.
_LISTING_TASKS_A_CORE = 2
# The driver lists so many directories of a local disk in less time than a job takes to start.
_LISTED_BY_THE_DRIVER = 400


def cheapest_way(
    columns: Sequence[str],
    rows: Collection[Sequence[Value | None]],
    total: int,
    on_glue: bool = False,
) -> Way:
    """How to find the partitions with these values; the table has ``total`` partitions.

    ``on_glue`` says that the metastore is AWS Glue.

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
        return way_for(sum(map(len, rows)), plain, len(rows), total)
    filter_bytes = _filter_bytes(columns, rows) if plain else None
    return way_on_glue(filter_bytes, range_condition("", columns, rows) is not None)


def _filter_bytes(columns: Sequence[str], rows: Iterable[Sequence[Value | None]]) -> int:
    """At most so long is the filter that Spark makes: ``((a = "x" and b = 1) or ...)``."""
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


@contextmanager
def partition_lookup(session: SparkSession, ways: Collection[Way]) -> Iterator[None]:
    """Sets how Spark looks up partitions, for the block; a filter that fails is no error.

    An IN list of up to ``VALUES_A_SCAN`` values stays a list, whatever the session's threshold.
    All scans of a statement share the session's settings. If one scan looks up names, scans that
    would fetch every partition look up names too. On AWS Glue none looks up names.
    """
    threshold = max(int(str(session.conf.get(IN_SET_THRESHOLD))), VALUES_A_SCAN)
    settings = {
        FAST_FALLBACK: "false" if set(ways) == {Way.WHOLE} or is_on_glue(session) else "true",
        FALLBACK_ON_EXCEPTION: "true",
        IN_SET_THRESHOLD: str(threshold),
    }
    with conf_set(session, settings):
        yield


@contextmanager
def scanning(
    session: SparkSession,
    ways: Collection[Way],
    locations: Collection[str | None] = (),
    longest_list: int = 0,
) -> Iterator[None]:
    """Sets the session's settings for a map join, for the block: for its planning and its run.

    - Spark lists directories in a few tasks for each core, unless the user has set the number or
      the number of cores is not known, as over Spark Connect.
    - The driver itself lists up to a few hundred directories if all ``locations``, those of the
      pruned tables, are on a local disk and the user has set no threshold.
    - A list of up to ``longest_list`` values of a data column stays a list in Parquet's scans.
    """
    with ExitStack() as settings:
        if not is_remote(session) and not is_set(session, LISTING_PARALLELISM):
            tasks = _LISTING_TASKS_A_CORE * session.sparkContext.defaultParallelism
            settings.enter_context(conf_set(session, {LISTING_PARALLELISM: str(tasks)}))
        if locations and all(map(_is_local, locations)) and not is_set(session, LISTING_THRESHOLD):
            conf = {LISTING_THRESHOLD: str(_LISTED_BY_THE_DRIVER)}
            settings.enter_context(conf_set(session, conf))
        if longest_list > int(str(session.conf.get(PARQUET_IN_LIST))):
            settings.enter_context(conf_set(session, {PARQUET_IN_LIST: str(longest_list)}))
        if ways:
            settings.enter_context(partition_lookup(session, ways))
        yield


def _is_local(location: str | None) -> bool:
    """Whether a URI belongs to a local disk.

    >>> _is_local("file:/warehouse/sales"), _is_local("s3a://bucket/sales"), _is_local(None)
    (True, False, False)
    """
    return location is not None and location.startswith("file:")
