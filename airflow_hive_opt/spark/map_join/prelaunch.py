"""The map join stage: prelaunch, before the statement itself (HIVE-5119, steps 6 and 7)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from airflow_hive_opt.documents.descriptor import Descriptor, Target
from airflow_hive_opt.metastores.partitions import Partition, digest_of_values, matching
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.session.connect import is_remote
from airflow_hive_opt.spark.session.spark_compat import parsed, unexecuted
from airflow_hive_opt.spark.session.statement_errors import is_refusal, objection_in
from airflow_hive_opt.statement.identifiers import quote_table
from airflow_hive_opt.statement.zip_strict import zip_strict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
_SCRIPT = re.compile(r"\s*begin\b", re.IGNORECASE)


def prelaunch(
    catalog: SessionCatalog, descriptor: Descriptor, parameters: Mapping[str, object]
) -> tuple[Target, ...]:
    """The descriptor's targets with the partitions that the metastore has now.

    Drops partitions that no longer exist and adds new ones of the same keys. If one filter found
    the partitions, it runs again. Otherwise the names of the new ones are matched with the keys. If
    there are other conditions, the join reads the new partitions that may fulfil them.
    """
    targets = []
    for target in descriptor.targets:
        table = catalog.table(target.scan.table)
        if table is None:  # dropped since check_tables: the statement will fail with the reason
            return ()
        if target.filter:
            found = catalog.partitions_by_filter(
                table, target.scan.alias, target.filter, parameters
            )
            kept = tuple(found)
        elif target.partitions or target.new_partitions:
            names = catalog.partition_names(table)
            present = {partition.values for partition in names}
            old = (part for part in target.partitions if part.values in present)
            kept = (*old, *_added(catalog, target, names, table.by_serde))
        else:
            kept = ()
        before, after = ({part.values for part in parts} for parts in (target.partitions, kept))
        if gone := len(before - after):
            log.warning(
                "%d of %d partitions of %s no longer exist", gone, target.kept, target.scan.table
            )
        if new := len(after - before):
            log.info("%d partitions of %s are new since the keys were read", new, target.scan.table)
        targets.append(replace(target, partitions=kept))
    return tuple(targets)


def _added(
    catalog: SessionCatalog, target: Target, names: Sequence[Partition], by_serde: bool
) -> list[Partition]:
    """The partitions that the scan reads too, because partitions were added after the local task.

    They are those that were added, and also existing ones if their keys were the partitions of a
    table that has others now.
    """
    known = {part.values for part in target.partitions}
    types = dict(zip_strict(target.columns, target.types))
    found: dict[tuple[str | None, ...], Partition] = {}
    for each in target.new_partitions:
        old = known.union(each.left_out)
        if all(_digest(catalog, table) == digest for table, digest in each.names.items()):
            old |= set(each.left_out_by_names)
        keys = [
            (
                [target.columns.index(name) for name in given.columns],
                frozenset(given.tuples([types[name] for name in given.columns])),
            )
            for given in each.keys
        ]
        new = (part for part in names if part.values not in old)
        found |= {part.values: part for part in matching(new, target.types, keys, by_serde)}
    return list(found.values())


def _digest(catalog: SessionCatalog, name: str) -> str | None:
    table = catalog.table(name)
    return None if table is None else digest_of_values(catalog.partition_names(table))


def check_tables(session: SparkSession, catalog: SessionCatalog, descriptor: Descriptor) -> None:
    """Raises Spark's ``AnalysisException`` for a table that no longer exists."""
    for target in descriptor.targets:
        if catalog.table(target.scan.table) is None:
            _ = session.table(quote_table(target.scan.table)).schema


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
