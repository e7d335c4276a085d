"""The map-join stage: prelaunch, then the statement itself (HIVE-5119, steps 6 and 7)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.runtime.descriptor import Descriptor, Target
from airflow_hive_opt.spark.catalog import SparkCatalog
from airflow_hive_opt.spark.restrict import restrict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)


def prelaunch(catalog: SparkCatalog, descriptor: Descriptor) -> tuple[Target, ...]:
    """The descriptor's targets, less the partitions that have gone since it was written."""
    targets = []
    for target in descriptor.targets:
        table = catalog.table(target.table)
        if table is None:  # the statement itself will say so, in Spark's words
            return ()
        present = {partition.values for partition in catalog.partition_names(table)}
        kept = tuple(part for part in target.partitions if part.values in present)
        if len(kept) < target.kept:
            log.warning(
                "%d of %d partitions of %s are gone since their list was made",
                target.kept - len(kept),
                target.kept,
                target.table,
            )
        targets.append(replace(target, partitions=kept))
    return tuple(targets)


def run_map_join(
    session: SparkSession,
    sql: str,
    targets: tuple[Target, ...],
    parameters: Mapping[str, object] | Sequence[object] | None,
) -> DataFrame:
    """Runs the statement with its scans narrowed; a SELECT's rows are in the frame that returns."""
    narrowed = restrict(sql, targets)
    log.debug("running: %s", narrowed)
    return session.sql(narrowed, args=parameters or None)  # type: ignore[arg-type]
