"""The map join stage: prelaunch, before the statement itself (HIVE-5119, steps 6 and 7)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.runtime.descriptor import Descriptor, Target
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import parsed, unexecuted
from airflow_hive_opt.spark.session.statement_errors import is_refusal, objection_in
from airflow_hive_opt.statement.identifiers import quote_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
_SCRIPT = re.compile(r"\s*begin\b", re.IGNORECASE)


def prelaunch(
    catalog: SessionCatalog, descriptor: Descriptor, parameters: Mapping[str, object]
) -> tuple[Target, ...]:
    """The descriptor's targets with the partitions that the metastore has now.

    Drops partitions that no longer exist. If one filter found the partitions, it runs again, so
    that the join also reads new partitions of the same keys.
    """
    targets = []
    for target in descriptor.targets:
        table = catalog.table(target.table)
        if table is None:  # dropped since check_tables: the statement will fail with the reason
            return ()
        if target.filter:
            found = catalog.partitions_by_filter(table, target.alias, target.filter, parameters)
            kept = tuple(found)
        elif target.partitions:
            present = {partition.values for partition in catalog.partition_names(table)}
            kept = tuple(part for part in target.partitions if part.values in present)
        else:
            kept = ()
        before, after = ({part.values for part in parts} for parts in (target.partitions, kept))
        if gone := len(before - after):
            log.warning(
                "%d of %d partitions of %s no longer exist", gone, target.kept, target.table
            )
        if new := len(after - before):
            log.info("%d partitions of %s are new since the keys were read", new, target.table)
        targets.append(replace(target, partitions=kept))
    return tuple(targets)


def check_tables(session: SparkSession, catalog: SessionCatalog, descriptor: Descriptor) -> None:
    """Raises Spark's ``AnalysisException`` for a table that no longer exists."""
    for target in descriptor.targets:
        if catalog.table(target.table) is None:
            _ = session.table(quote_table(target.table)).schema


def accepts(session: SparkSession, sql: str, parameters: Mapping[str, object]) -> bool:
    """Whether Spark can parse and resolve the statement; runs nothing.

    Also true if the check itself fails, for example because a metastore does not answer.
    A script is only parsed, because EXPLAIN does not accept it. Over Spark Connect a script is not
    checked at all.
    """
    try:
        if _SCRIPT.match(sql):
            if is_remote(session):
                return True
            parsed(session, sql)
            return True
        if not is_remote(session):
            unexecuted(session, sql, parameters).assertAnalyzed()
            return True
        rows = session.sql(f"EXPLAIN {sql}", args=dict(parameters)).collect()
    except (PySparkException, Py4JJavaError) as error:
        return not is_refusal(error)
    objection = objection_in(rows)
    return objection is None or not is_refusal(objection)
