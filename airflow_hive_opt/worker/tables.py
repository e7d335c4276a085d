"""The tables of a query, loaded into DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.documents.small_tables import SmallTable
from airflow_hive_opt.metastores.partitions import Partition, digest_of_values
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.worker.casts import canonical, in_calendar, value_of_text
from airflow_hive_opt.worker.database import load, texts
from airflow_hive_opt.worker.files.rows import Part, Reader, Rows, check_readable, parts_of
from airflow_hive_opt.worker.files.text import text_of_null
from airflow_hive_opt.worker.lakes.lake_table import LakeTable
from airflow_hive_opt.worker.translation.typed import identifier
from airflow_hive_opt.worker.translation.work import Source
from airflow_hive_opt.worker.types import sql_type
from airflow_hive_opt.worker.unanswered import NotUnderstood, Unanswered

if TYPE_CHECKING:
    import duckdb

    from airflow_hive_opt.documents.storage import StoragePath

MOST_BYTES = 64 << 20
"""The bytes of the files of one table that are read."""


class SmallTables(Protocol):
    """The protocol of a catalog of small tables; it may raise its own errors."""

    def table(self, name: str) -> Table | None:
        """The table of a name as in the statement, in lower case."""

    def storage(self, table: Table) -> Storage | None:
        """How the table's files are read; ``None`` if that is not known."""

    def stored_partitions(self, table: Table) -> Sequence[tuple[Partition, Storage]]:
        """The partitions of a partitioned table, each with its own storage."""

    def partition_names(self, table: Table) -> Sequence[Partition]:
        """The partitions of a table by their names."""


def _no_lake(table: Table) -> LakeTable:
    raise NotUnderstood(f"{table.name}, a table of {table.provider}")


@dataclass(frozen=True)
class Tables:
    """The tables that queries read.

    - ``skeletons`` are tables of which only the partition names are read.
    - ``open_path`` makes a path of a URI.
    - ``lake`` gives a table that lists its own files.
    - ``read`` has the tables whose files have been read, by name.
    - ``snapshots`` are those of Iceberg's tables among them.
    """

    known: SmallTables
    open_path: Callable[[str], StoragePath]
    skeletons: Mapping[str, Table] = field(default_factory=dict)
    most_bytes: int = MOST_BYTES
    lake: Callable[[Table], LakeTable] = _no_lake
    read: dict[str, SmallTable] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def source(self, name: str) -> Source:
        """The table of a name; raises :class:`NotUnderstood` if there is none."""
        if name in self.skeletons:
            columns = self.skeletons[name].partition_columns
            return Source(name, {column.name: column.type for column in columns})
        table = self.known.table(name)
        if table is None:
            raise NotUnderstood(f"{name}, which is no table of the metastore")
        types = {column.name: column.type for column in table.all_columns}
        try:
            _ = self.lake(table) if table.provider else self._storage(table)
        except NotUnderstood as why:
            return Source(name, types, why)
        return Source(name, types)

    def load(
        self, connection: duckdb.DuckDBPyConnection, used: Mapping[str, Collection[str]]
    ) -> None:
        """Makes a table of DuckDB for each key of ``used``, with the columns that are named."""
        for key, names in used.items():
            if key in self.skeletons:
                self._load_names(connection, key)
            else:
                self._load_rows(connection, key, names)

    def note(self, read: SmallTable | Snapshot) -> None:
        """Notes the state of a table whose keys are used.

        Raises :class:`Unanswered` if keys of another state of the table are used too.
        """
        if isinstance(read, Snapshot):
            name, same = read.table, self.snapshots.setdefault(read.table, read) == read
        else:
            name, same = read.name, self.read.setdefault(read.name, read) == read
        if not same:
            raise Unanswered(f"{name} changes while the worker reads it")

    def _storage(self, table: Table) -> Storage:
        if table.definition is not None or table.view is not None:
            raise NotUnderstood(f"{table.name}, which has no files of its own")
        if not table.partitions_in_metastore:  # Spark then finds folders, or has no partitions
            raise NotUnderstood(f"{table.name}, whose partitions are not in the metastore")
        storage = self.known.storage(table)
        if storage is None:
            raise NotUnderstood(f"{table.name}, whose files are not known")
        check_readable(table.name, storage)
        return storage

    def _load_rows(
        self, connection: duckdb.DuckDBPyConnection, key: str, names: Collection[str]
    ) -> None:
        table = self.known.table(key)
        if table is None:
            raise Unanswered(f"the metastore has no table {key}")
        columns = [column for column in table.all_columns if column.name in names]
        listed = [column.name for column in columns]
        read = self._lake_rows if table.provider else self._rows
        rows, partitioned = read(table, listed)
        if not columns:
            made = f"CREATE TABLE {identifier(key)} AS SELECT 1 AS one FROM range({rows.count})"
            connection.execute(made)
            return
        selected = []
        for column in columns:
            if column.name in rows.texts:
                nulls = "" if column.name in partitioned else text_of_null(column.type)
                selected.append(canonical(column.name, column.type, nulls))
            elif column.type == "date":
                selected.append(in_calendar(column.name))
            else:
                selected.append(identifier(column.name))
        load(connection, key, rows.table, ", ".join(selected))

    def _rows(self, table: Table, listed: Sequence[str]) -> tuple[Rows, Collection[str]]:
        """The rows of a table of files, and its partition columns."""
        parts, names = self.parts(table)
        rows = Reader(table, listed, self.open_path, self.most_bytes).rows(parts)
        self.note(SmallTable(table.name, rows.folders, names))
        return rows, {column.name for column in table.partition_columns}

    def parts(self, table: Table) -> tuple[list[Part], str | None]:
        """The folders of a table of files, and the digest of its partitions' values, if any."""
        storage = self._storage(table)
        if not table.partition_columns:
            return parts_of(table, storage, ()), None
        partitions = self.known.stored_partitions(table)
        for _, own in partitions:
            if (own.format, own.serde) != (storage.format, storage.serde):
                raise Unanswered(f"{table.name} has partitions of another format than its own")
        names = digest_of_values([part for part, _ in partitions])
        return parts_of(table, storage, partitions), names

    def _lake_rows(self, table: Table, listed: Sequence[str]) -> tuple[Rows, Collection[str]]:
        """The rows of a table that lists its own files, and its columns that files do not have."""
        found = self.lake(table).read(listed, self.most_bytes)
        self.note(found.snapshot or SmallTable(table.name, found.rows.folders))
        return found.rows, {column.name for column in found.partition_columns}

    def _load_names(self, connection: duckdb.DuckDBPyConnection, key: str) -> None:
        table = self.skeletons[key]
        partitions = self.known.partition_names(table)
        load_names(connection, key, table, partitions)
        odd = f"SELECT 1 FROM {identifier(key)} WHERE __odd LIMIT 1"
        if connection.execute(odd).fetchone():
            raise Unanswered(f"the name of a partition of {table.name} has no readable value")


def load_names(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    table: Table,
    partitions: Sequence[Partition],
) -> None:
    """Makes a table of DuckDB with a row for each partition and its partition columns.

    Columns of other types than the worker evaluates are not there. ``__row`` is the position in
    ``partitions``. ``__odd`` is true if one of the columns has a text that readers may take for
    different values, or the NULL partition of a table that a serde reads.
    """
    import pyarrow as pa

    listed = [
        (at, column)
        for at, column in enumerate(table.partition_columns)
        if sql_type(column.type) is not None
    ]
    arrays = [texts([each.values[at] for each in partitions]) for at, _ in listed]
    rows = pa.table(arrays, names=[f"t{at}" for at, _ in listed]) if listed else None
    values, odd = ["row_number() OVER () - 1 AS __row"], ["false"]
    for at, column in listed:
        value = value_of_text(f"t{at}", column.type)
        values.append(f"CAST({value} AS {_duckdb(column.type)}) AS {identifier(column.name)}")
        known = "true" if table.by_serde else f"t{at} IS NOT NULL"
        odd.append(f"({known} AND ({value}) IS NULL)")
    if rows is None:
        numbered = f"SELECT range AS __row FROM range({len(partitions)})"
        made = f"CREATE TABLE {identifier(key)} AS SELECT __row, false AS __odd FROM ({numbered})"
        connection.execute(made)
        return
    selected = f"{', '.join(values)}, ({' OR '.join(odd)}) AS __odd"
    load(connection, key, rows, selected)


def _duckdb(hive: str) -> str:
    type_ = sql_type(hive)
    assert type_ is not None
    return type_.duckdb
