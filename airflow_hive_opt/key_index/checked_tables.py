"""What the checker reads of a table: its data files, and columns of one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Optional, Protocol
from urllib.parse import unquote

if TYPE_CHECKING:
    import deltalake
    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from airflow_hive_opt.documents.storage import StoragePath


class NotCheckedError(Exception):
    """Something can't be checked; the message says why."""


class CheckedTable(Protocol):
    """A table of any format. Columns are named in any case, snapshots as in a descriptor.

    Errors are :class:`NotCheckedError`, and those of PyArrow, of the format's library and of the
    storage.
    """

    def index_of(self, column: str) -> tuple[str, str]:
        """The table's ID, and the column's, which name the folder of its index."""

    def has(self, snapshot: str, table_id: str) -> bool:
        """Whether a snapshot is one of the table's; ``table_id`` is as in the descriptor."""

    def files(self, snapshot: Optional[str]) -> Mapping[str, Any]:
        """The data files of a snapshot by their paths; of the current one for ``None``."""

    def read(self, file: Any, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """Columns of one of the ``files``, also of rows that are deleted."""


class CheckedIceberg:
    """A :class:`CheckedTable`, by PyIceberg's own reader."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def index_of(self, column: str) -> tuple[str, str]:
        """See :class:`CheckedTable`."""
        return str(self._table.metadata.table_uuid), str(self._field(column))

    def has(self, snapshot: str, table_id: str) -> bool:  # noqa: ARG002
        """See :class:`CheckedTable`."""
        return any(str(each.snapshot_id) == snapshot for each in self._table.metadata.snapshots)

    def files(self, snapshot: Optional[str]) -> Mapping[str, DataFile]:
        """See :class:`CheckedTable`."""
        return {file.file_path: file for file in self._files(snapshot)}

    def read(self, file: Any, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """See :class:`CheckedTable`."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table import FileScanTask

        table = self._table
        numbers = [self._field(name) for name in columns]
        names = [str(table.schema().find_column_name(number)) for number in numbers]
        schema = table.schema().select(*names)
        scan = ArrowScan(table.metadata, table.io, schema, AlwaysTrue())
        rows = scan.to_table([FileScanTask(file)])
        return [rows.column(name) for name in names]

    def _files(self, name: Optional[str]) -> Iterator[DataFile]:
        table = self._table
        snapshot = table.current_snapshot() if name is None else table.snapshot_by_id(int(name))
        for manifest in () if snapshot is None else snapshot.manifests(table.io):
            if manifest.content == 0:
                for entry in manifest.fetch_manifest_entry(table.io):
                    yield entry.data_file

    def _field(self, name: str) -> int:
        """The number of a column."""
        fields = self._table.schema().fields
        found = [each for each in fields if each.name.lower() == name.lower()]
        if len(found) != 1:
            raise NotCheckedError(f"the table has no column {name}, or several")
        return found[0].field_id


class CheckedDelta:
    """A :class:`CheckedTable`: the log by deltalake, and the files by PyArrow."""

    def __init__(self, folder: StoragePath) -> None:
        self._folder = folder
        self._at = lru_cache(maxsize=None)(self._opened)

    def index_of(self, column: str) -> tuple[str, str]:
        """See :class:`CheckedTable`."""
        table = self._at(None)
        return str(table.metadata().id), _name_in_files(table, _column(table, column))

    def has(self, snapshot: str, table_id: str) -> bool:
        """See :class:`CheckedTable`."""
        from deltalake.exceptions import DeltaError

        if table_id != str(self._at(None).metadata().id):
            return False
        try:
            return self._at(int(snapshot)).version() == int(snapshot)
        except (ValueError, DeltaError):  # it is of another format, or the log has it no longer
            return False

    def files(self, snapshot: Optional[str]) -> Mapping[str, Any]:
        """See :class:`CheckedTable`."""
        import pyarrow as pa

        table = self._at(None if snapshot is None else int(snapshot))
        added = pa.table(table.get_add_actions(flatten=True))
        return {
            unquote(row["path"]): (table, row, added.schema)
            for row in added.select(
                [name for name in added.column_names if name.startswith(("path", "partition."))]
            ).to_pylist()
        }

    def read(self, file: Any, columns: Sequence[str]) -> list[pa.ChunkedArray]:
        """See :class:`CheckedTable`: a partition's values are those of the log."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table, row, types = file
        path = f"{self._folder.path.rstrip('/')}/{unquote(row['path'])}"
        found = []
        with self._folder.fs.open(path, "rb") as source:
            rows = pq.ParquetFile(source)
            for field in (_column(table, name) for name in columns):
                if field["name"] in table.metadata().partition_columns:
                    name = f"partition.{field['name']}"
                    value = pa.scalar(row[name], types.field(name).type)
                    values = pa.chunked_array([pa.repeat(value, rows.metadata.num_rows)])
                else:
                    values = _values(rows, _name_in_files(table, field), field["type"])
                found.append(values)
        return found

    def _opened(self, version: Optional[int]) -> deltalake.DeltaTable:
        import deltalake

        is_local = self._folder.protocol in ("", "file", "local")
        place = self._folder.path if is_local else str(self._folder)
        return deltalake.DeltaTable(place, version=version)


def _column(table: deltalake.DeltaTable, name: str) -> dict[str, Any]:
    """A column of a Delta table."""
    fields = json.loads(table.schema().to_json())["fields"]
    found = [field for field in fields if field["name"].lower() == name.lower()]
    if len(found) != 1:
        raise NotCheckedError(f"the table has no column {name}, or several")
    return dict(found[0])


def _name_in_files(table: deltalake.DeltaTable, field: Mapping[str, Any]) -> str:
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode == "id":
        raise NotCheckedError("the table's columns are found by IDs")
    named = "delta.columnMapping.physicalName" if mode == "name" else ""
    return str(field["metadata"][named] if named else field["name"])


def _values(rows: Any, name: str, type_: str) -> pa.ChunkedArray:
    """A column of a file; NULLs if it has no such one."""
    import pyarrow as pa

    type_of_nulls = {"string": pa.string(), "date": pa.date32()}.get(type_, pa.int64())

    found = [each for each in rows.schema_arrow.names if each.lower() == name.lower()]
    if len(found) > 1:
        raise NotCheckedError(f"a file has several columns {name}")
    if not found:
        return pa.chunked_array([pa.nulls(rows.metadata.num_rows, type_of_nulls)])
    values = rows.read(columns=found).column(found[0])
    is_dictionary = pa.types.is_dictionary(values.type)
    return values.cast(values.type.value_type) if is_dictionary else values
