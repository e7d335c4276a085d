"""Tables of which the metastore's entry tells the format, and which are described by that entry."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG, Place, load
from airflow_hive_opt.spark.catalog.table_facts import columns_of
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.identifiers import quote_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def listing_its_files(session: SparkSession, table: Table, provider: str) -> Table:
    """A table of the metastore, described as one of the format ``provider``.

    Such a table has no partitions of the metastore. Its partition columns are those of the
    metastore's entry, or if there are none, those that the registered catalog gives.
    """
    named = tuple(column.name for column in table.partition_columns)
    columns = table.columns
    if named or not columns:
        columns = _columns_read(session, table.name) or table.all_columns
    return replace(
        table,
        columns=columns,
        partition_columns=(),
        partitions_in_metastore=True,
        total_bytes=UNKNOWN_SIZE if table.total_bytes is None else table.total_bytes,
        provider=provider,
        clustered_by=named or _columns_of_the_catalog(session, table.name),
    )


def identity_columns(loaded: Any) -> tuple[str, ...]:
    """The columns of the identity transforms of a table that Spark loads, in lower case."""
    by_identity = (each for each in loaded.partitioning() if str(each.name()) == "identity")
    fields = (list(each.references()[0].fieldNames()) for each in by_identity)
    return tuple(str(names[0]).lower() for names in fields if len(names) == 1)


def _columns_read(session: SparkSession, name: str) -> tuple[Column, ...]:
    """The columns in the order in which Spark reads them, which the entry need not have.

    Empty if Spark can't read the table.
    """
    try:
        frame = session.table(quote_table(name))
        return tuple(columns_of(frame._jdf.queryExecution().analyzed().schema()))
    except (PySparkException, Py4JError) as error:  # the statement itself gives the reason
        log.debug("%s can't be read: %s", name, error)
        return ()


def _columns_of_the_catalog(session: SparkSession, name: str) -> tuple[str, ...]:
    """The partition columns that the registered session catalog gives, if there is one."""
    if not session.conf.get(f"spark.sql.catalog.{SESSION_CATALOG}", ""):
        return ()
    database, _, short = name.rpartition(".")
    try:
        return identity_columns(load(session, Place(SESSION_CATALOG, (database,), short)))
    except (PySparkException, Py4JError) as error:
        log.debug("the partition columns of %s are not known: %s", name, error)
        return ()
