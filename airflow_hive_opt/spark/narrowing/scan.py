"""How Spark is told which partitions to scan.

Spark asks its metastore for the partitions of a scan by the conditions on partition columns. Left
to itself it turns a long list into a range, above
``spark.sql.hive.metastorePartitionPruningInSetThreshold``, and fetches every partition where the
metastore's filter language can't say the condition. So it is told in one of three ways:

- by *filter*: a few values as an IN list, which the metastore evaluates;
- by *names*: more of them in a form that Spark can't hand on. With
  ``spark.sql.hive.metastorePartitionPruningFastFallback`` it then evaluates the condition on the
  partitions' names and fetches those that it needs by name. A predicate of the statement's own
  that a filter can say is handed on still, and its partitions are fetched instead;
- as a *whole*: above three tenths of all, one call for every partition is no dearer than naming so
  many; the condition still spares the listing and the reading of the rest.

Which way at which size is in :mod:`~airflow_hive_opt.pruning.scan_way`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.scan_way import VALUES_A_SCAN, Way, way_for
from airflow_hive_opt.runtime.partitions import Value
from airflow_hive_opt.spark.narrowing.literals import is_plain, names_condition, tuples_condition
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.session_conf import conf_set, is_set

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_SET_THRESHOLD = "spark.sql.hive.metastorePartitionPruningInSetThreshold"
FAST_FALLBACK = "spark.sql.hive.metastorePartitionPruningFastFallback"
FALLBACK_ON_EXCEPTION = "spark.sql.hive.metastorePartitionPruningFallbackOnException"
# Parquet makes a range of longer lists of a data column's values.
PARQUET_IN_LIST = "spark.sql.parquet.pushdown.inFilterThreshold"
LISTING_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTING_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
# Spark's listing job has a task for each path, up to 10,000; the tasks cost more than the listing.
_LISTING_TASKS_A_CORE = 2
# So many directories of a local disk are listed in less time than a job takes to begin.
_LISTED_BY_THE_DRIVER = 400


def way(rows: Collection[Sequence[Value | None]], total: int) -> Way:
    """How to find the partitions with these values, of ``total``.

    >>> way([(None,)], 10_000)
    <Way.NAMES: 'names'>
    """
    plain = all(value is not None and is_plain(value) for row in rows for value in row)
    return way_for(sum(map(len, rows)), plain, len(rows), total)


def list_condition(
    alias: str, columns: Sequence[str], rows: Collection[Sequence[Value | None]], total: int
) -> str:
    """A condition that picks the partitions with these values, of ``total``, in the cheapest way.

    >>> list_condition("s", ["ds"], [("a",), ("b",)], 10_000)
    "`s`.`ds` IN ('a', 'b')"
    >>> list_condition("s", ["ds"], [("a",), (None,)], 10_000)
    "concat(`s`.`ds`, '') IN ('a') OR `s`.`ds` IS NULL"
    """
    if way(rows, total) is Way.FILTER:
        return tuples_condition(alias, columns, rows)
    return names_condition(alias, columns, rows)


@contextmanager
def asking(session: SparkSession, ways: Collection[Way]) -> Iterator[None]:
    """Spark asks in these ways, for the block; also where the metastore refuses a filter.

    A short IN list stays one whatever the session's threshold. Scans of one statement share the
    session, so one that goes by names takes those along that would go as a whole.
    """
    threshold = max(int(str(session.conf.get(IN_SET_THRESHOLD))), VALUES_A_SCAN)
    settings = {
        FAST_FALLBACK: "false" if set(ways) == {Way.WHOLE} else "true",
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
    """The session as a map join wants it, for the block: both its planning and its run.

    Directories are listed in a few tasks a core, unless the user says in how many, or the cores
    are not known, as over Spark Connect; some hundred by the driver itself, unless the user says
    how many, where all ``locations``, those of the pruned tables, are on a local disk.
    ``longest_list`` values of a data column stay a list in Parquet's scans.
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
            settings.enter_context(asking(session, ways))
        yield


def _is_local(location: str | None) -> bool:
    """Whether a URI is of a local disk.

    >>> _is_local("file:/warehouse/sales"), _is_local("s3a://bucket/sales"), _is_local(None)
    (True, False, False)
    """
    return location is not None and location.startswith("file:")
