"""Sets how Spark looks up the partitions of a scan.

:mod:`~airflow_hive_opt.restriction.list_condition` describes the ways of lookup.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.scan_way import VALUES_A_SCAN, Way
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.glue import is_on_glue
from airflow_hive_opt.spark.session.session_conf import conf_set, is_set

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
