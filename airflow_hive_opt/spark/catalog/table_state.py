"""What changes whenever Spark would read other rows from a table, as far as that can be told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.key_set import columns_fact, digest_of, has_settled
from airflow_hive_opt.metastores.hive_tables import read_as
from airflow_hive_opt.spark.catalog.folder_files import Entry, entries
from airflow_hive_opt.spark.catalog.lakes.formats import loaded_format
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.spark.catalog.table_facts import location_of, provider_of
from airflow_hive_opt.statement.identifiers import quote_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hive_opt.statement.catalog import Table

# Spark's own formats whose rows are those of the files in the table's folder.
_OF_FILES = ("parquet", "orc", "csv", "json", "text")
_OF_HIVE = ("parquet", "orc", "text")
_MOST_PARTITIONS = 200
"""Each has a folder to list."""
LEAVES_OUT_FILES = re.compile(r"ignore(?:corrupt|missing)files", re.IGNORECASE)
"""The ends of settings and options with which Spark leaves out files that it can't read."""


class UnknownState(Exception):
    """Nothing tells whether a table has changed; the message says why."""


def table_state(session: SparkSession, table: Table) -> dict[str, str]:
    """The facts of a table that differ once the session reads other rows from it.

    They are its columns, and the current snapshot of a table with its own list of files; of other
    tables, digests of the files with their sizes and times, of the partitions, and of how the files
    are read. Raises :class:`UnknownState`, and the errors of Spark and of py4j.
    """
    state = _of_snapshot(session, table) if table.provider else _of_files(session, table)
    return {**columns_fact(table.all_columns), **state}


def forget_files(session: SparkSession, table: Table) -> None:
    """Lets the session list the files of a table of the metastore again, when it reads the table.

    Other sessions keep their lists.
    """
    state: Any = session._jsparkSession.sessionState()
    state.catalog().refreshTable(state.sqlParser().parseTableIdentifier(quote_table(table.name)))


def _of_snapshot(session: SparkSession, table: Table) -> dict[str, str]:
    place = Place.of(table.name)
    loaded = load(session, place)
    format_ = loaded_format(session, loaded)
    version = None if format_ is None else format_.version(session, place, loaded)
    if format_ is None or version is None:
        raise UnknownState(f"{table.name} has no snapshot that can be compared")
    facts = format_.state(loaded)
    if not facts:
        raise UnknownState(f"{table.name} has no metadata that can be compared")
    return {"snapshot": version, **facts}


def _of_files(session: SparkSession, table: Table) -> dict[str, str]:
    database, _, short = table.name.rpartition(".")
    if not database or not table.partitions_in_metastore or "." in database:
        raise UnknownState(f"{table.name} is no table of files in the metastore")
    java: Any = session._jsparkSession
    external = java.sharedState().externalCatalog()
    metadata = external.getTable(database, short)
    _check_format(table.name, metadata)
    properties = sorted(str(metadata.properties().mkString("\0")).split("\0"))
    options = str(metadata.storage().properties().mkString("\0")).split("\0")
    if any(LEAVES_OUT_FILES.search(each) for each in (*properties, *options)):
        raise UnknownState(f"{table.name} has an option with which Spark may leave out files")
    state = {"storage": digest_of(str(metadata.storage().toString()), properties)}
    locations = [location_of(metadata)]
    if table.partition_columns:
        jvm: Any = session._jvm
        every = jvm.scala.Option.empty()
        if int(external.listPartitionNames(database, short, every).size()) > _MOST_PARTITIONS:
            raise UnknownState(f"{table.name} has more than {_MOST_PARTITIONS} partitions")
        partitions = external.listPartitions(database, short, every)
        each = [partitions.apply(at) for at in range(int(partitions.size()))]
        if provider_of(metadata) == "hive":  # Spark reads its own tables in the table's format
            own = _read_by(metadata)
            if any(_read_by(one) != own for one in each):
                raise UnknownState(f"{table.name} has partitions of another format than its own")
        state["partitions"] = digest_of(sorted(str(one.toString()) for one in each))
        locations = [location_of(one) for one in each]
    listed = []
    for location in locations:
        if location is None:
            raise UnknownState(f"the location of {table.name} is not known")
        listed.append((location, _files(table.name, location, entries(session, location))))
    state["files"] = digest_of(sorted(listed))
    return state


def _check_format(name: str, metadata: Any) -> None:
    """Raises :class:`UnknownState` unless the table's rows are those of the files in its folder."""
    provider = provider_of(metadata)
    if provider in _OF_FILES:
        return
    serde, input_format = _read_by(metadata)
    if provider != "hive" or read_as(serde, input_format) not in _OF_HIVE:
        what = provider if provider != "hive" else serde
        raise UnknownState(f"{name} has the format {what}, whose rows may be those of other files")


def _read_by(metadata: Any) -> tuple[str, str]:
    """The serde and the input format of a table or partition; empty if it has none."""
    storage = metadata.storage()
    serde, input_format = (
        str(each.get()) if each.isDefined() else ""
        for each in (storage.serde(), storage.inputFormat())
    )
    return serde, input_format


def _files(name: str, location: str, found: list[Entry]) -> list[tuple[str, int, int]]:
    files = []
    for each in found:
        if each.name.startswith("_") and "=" in each.name:
            raise UnknownState(f"readers differ on whether {each.name} belongs to {name}")
        if each.name.startswith(("_", ".")):
            continue
        if each.is_folder:
            raise UnknownState(f"{name} has folders in {location}")
        if not has_settled(each.changed / 1000):
            raise UnknownState(f"{name} has just changed, and may change again unnoticed")
        files.append((each.name, each.size, each.changed))
    return sorted(files)
