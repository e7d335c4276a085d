"""Delta tables: the log is read with deltalake, and the files as those of any Parquet table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from airflow_hive_opt.documents.key_set import digest_of
from airflow_hive_opt.documents.small_tables import digest_of_files
from airflow_hive_opt.key_index.delta_log import LOG, IncompleteLogError, opened
from airflow_hive_opt.metastores.hive_tables import normal
from airflow_hive_opt.metastores.spark_properties import columns_in
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.lake_formats import DELTA
from airflow_hive_opt.worker.files.folder import DataFile, listed_files
from airflow_hive_opt.worker.files.rows import Part, Reader
from airflow_hive_opt.worker.lakes.lake_table import LakeRows, LakeState
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    from deltalake import DeltaTable as DeltaLake

    from airflow_hive_opt.documents.storage import StoragePath

# Features of the table's protocol that change nothing, or that show in what is checked below.
_UNDERSTOOD = frozenset(
    {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
)


@dataclass(frozen=True)
class DeltaTable:
    """A :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`.

    ``files`` are the data files with their partitions' values, ``columns`` those of the table in
    its order. ``log`` has the place of the log and the digest of its files. ``uuid`` is another
    one for a table that is made again in the same folder.
    """

    name: str
    location: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    files: tuple[tuple[DataFile, tuple[str | None, ...]], ...]
    log: tuple[str, str]
    uuid: str
    open_path: Callable[[str], StoragePath]

    @property
    def described(self) -> Table:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        return Table(
            self.name,
            self.columns,
            total_bytes=sum(file.size for file, _ in self.files),
            location=self.location,
            provider=DELTA,
            clustered_by=self.partitioned_by,
        )

    def state(self) -> LakeState:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        facts = {"log": digest_of(self.log), "table ID": self.uuid}
        return LakeState(facts, folders=(self.log,))

    def read(self, names: Sequence[str], most_bytes: int) -> LakeRows:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        types = {column.name: column for column in self.columns}
        partitions = tuple(types[name] for name in self.partitioned_by)
        data = tuple(column for column in self.columns if column not in partitions)
        storage = Storage(self.location, "parquet")
        table = Table(self.name, data, partitions)
        reader = Reader(table, names, self.open_path, most_bytes)
        rows = reader.rows([Part(storage, values, (file,)) for file, values in self.files])
        return LakeRows(replace(rows, folders=(self.log,)), partitions)


def in_folder(name: str, location: str, open_path: Callable[[str], StoragePath]) -> DeltaTable:
    """The table in a folder; raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`."""
    location = normal(location)
    log = f"{location}/{LOG}"
    folder = open_path(log)
    entries = listed_files(folder)
    try:
        names = [file.name for file in entries]
        with opened(folder.fs, folder.path.rstrip("/"), names) as read:
            found = _described(read)
    except (Unanswered, IncompleteLogError) as why:
        raise Unanswered(f"{name}: {why}") from why
    except Exception as error:  # of drivers, of deltalake
        raise Unanswered(f"can't read the log of {name}: {error}") from error
    digest = digest_of_files((file.name, file.size, file.changed) for file in entries)
    root: Any = open_path(location)
    data_files = tuple(
        (DataFile(root.fs, f"{root.path.rstrip('/')}/{path}", size, 0), values)
        for path, size, values in found.files
    )
    return DeltaTable(
        name,
        location,
        found.columns,
        found.partitioned_by,
        data_files,
        (log, digest),
        found.uuid,
        open_path,
    )


@dataclass(frozen=True)
class _Log:
    """The content of a log: ``files`` are paths in the table's folder, with bytes and partition."""

    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...]
    files: tuple[tuple[str, int, tuple[str | None, ...]], ...]
    uuid: str


def _described(table: DeltaLake) -> _Log:
    """The table as ``deltalake`` has opened it; raises ``Unanswered``."""
    import pyarrow as pa

    _check(table)
    schema = table.schema().to_json()
    if "parquet.field.id" in schema:
        raise Unanswered("the files number the table's columns by field ids")
    columns = columns_in(schema)
    names = [field["name"] for field in json.loads(schema)["fields"]]
    if len({name.lower() for name in names}) < len(names):
        raise Unanswered("the names of two columns differ in case alone")
    partitioned_by = list(table.metadata().partition_columns)
    added = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = tuple(
        (
            _path(each["path"]),
            int(each["size_bytes"]),
            tuple(_text(each[f"partition.{name}"]) for name in partitioned_by),
        )
        for each in added
    )
    table_id = str(table.metadata().id)
    return _Log(columns, tuple(name.lower() for name in partitioned_by), files, table_id)


def _check(table: DeltaLake) -> None:
    """Raises ``Unanswered`` if the files have other rows or columns than the table."""
    unknown = set(table.protocol().reader_features or ()) - _UNDERSTOOD
    if unknown:
        raise Unanswered(f"the worker does not read tables with the feature {min(unknown)}")
    configuration: Mapping[str, str] = table.metadata().configuration
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        raise Unanswered(
            "the table's columns have other names in its files (delta.columnMapping.mode)"
        )
    if any("coordinatedcommits" in name.lower() for name in configuration):
        raise Unanswered("the table has commits outside its log (coordinated commits)")
    if "deletionVectors" in (table.protocol().reader_features or ()) and _has_vectors(table):
        raise Unanswered("the table has deletion vectors")


def _has_vectors(table: DeltaLake) -> bool:
    """Whether rows of its files are deleted. A vector's own file is not in the copy of the log."""
    try:
        return any(batch.num_rows for batch in table.deletion_vectors())
    except Exception:  # noqa: BLE001 - it is not read
        return True


def _path(written: str) -> str:
    """The path of a data file in the table's folder; the log has it as a URI."""
    path = unquote(written)
    if path.startswith("/") or "://" in path or path.startswith("file:"):
        raise Unanswered("the table has files outside its folder")
    return path


def _text(value: object) -> str | None:
    """A partition's value as a text; an empty one is NULL."""
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
