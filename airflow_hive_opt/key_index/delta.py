"""A column of a Delta table: its data files by the table's log, and their keys by PyArrow.

A file never changes under its name. So the index says for ever which keys the file's column has,
whatever the table calls the column later. Deleted rows do not matter: their keys only let a scan
read a file too many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Optional
from urllib.parse import unquote

from airflow_hive_opt.key_index.indexed_column import (
    DataFile,
    IndexingError,
    LeftOut,
    NotIndexable,
    in_words,
)
from airflow_hive_opt.key_index.parquet_keys import keys_in

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from airflow_hive_opt.key_index.delta_log import DeltaLog

# Spark's names of the types that keys can have.
_TYPES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{"date": "date", "string": "string"},
}
# The values between which Spark surely reads what the file has, and what is said of others.
_ENDS = {
    **{"tinyint": (-(2**7), 2**7 - 1), "smallint": (-(2**15), 2**15 - 1)},
    **{"int": (-(2**31), 2**31 - 1)},
    "date": ((date(1582, 10, 15) - date(1970, 1, 1)).days, (date.max - date(1970, 1, 1)).days),
}
_UNSURE = {"date": "are dates before 1582-10-15 or after 9999-12-31"}
# Such a file has dates of the Julian calendar.
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
# Features of a reader that leave the files' values as they are. A vector only deletes rows.
_UNDERSTOOD = frozenset(
    {
        *("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"),
        *("vacuumProtocolCheck", "typeWidening", "typeWidening-preview"),
        *("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"),
    }
)
_MAPPING = "delta.columnMapping.mode"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_OUTSIDE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:|(?:.*/)?\.\.(?:/|$)")


class DeltaColumn:
    """An :class:`~airflow_hive_opt.key_index.indexed_column.IndexedColumn`.

    :param log: the table, at its current version.
    :param name: the table's name, for messages.
    :param column: the column's name, in any case.

    Raises :class:`~airflow_hive_opt.key_index.indexed_column.NotIndexable` for a column that
    can't have an index.
    """

    def __init__(self, log: DeltaLog, name: str, column: str) -> None:
        mode = _mode(log, name)
        field = _field(log, name, column)
        self._log = log
        self._has_default = "EXISTS_DEFAULT" in _told(field)
        self.table_uuid = log.table_id
        self.table = name
        self.field_id = _physical(field, name, mode)
        self.column = str(field["name"])
        self.type = _TYPES[field["type"]]
        self.snapshot_id: Optional[int] = log.version

    @property
    def why_unused(self) -> str:
        """See ``IndexedColumn``."""
        fields = {field["name"]: field for field in _fields(self._log)}
        partitions = [fields[name] for name in self._log.partition_columns if name in fields]
        if any(not _why_no_keys(field) for field in partitions):
            return ""
        return (
            f"no statement can use the index of {self.column} of {self.table}: the table must be "
            "partitioned by a column that is a whole number, date or string"
        )

    def files(self, since: Optional[int]) -> Sequence[DataFile]:
        """See ``IndexedColumn``: by the commits after the version ``since``."""
        new = None if since is None else self._paths_since(since)
        return [
            DataFile(unquote(path), rows, _why_left_out(path))
            for path, rows in self._log.files
            if new is None or path in new
        ]

    def paths_of_all_snapshots(self) -> set[str]:
        """See ``IndexedColumn``: those of the commits that the log still has."""
        paths = self._paths_since(None) or set()
        return {unquote(path) for path in (*paths, *(path for path, _ in self._log.files))}

    def keys_of(self, path: str) -> pa.Array:
        """See ``IndexedColumn``."""
        import pyarrow as pa
        import pyarrow.compute as pc

        with self._log.file_system.open(f"{self._log.folder}/{path}", "rb") as source:
            keys = keys_in(source, self.type, self._name_in)
        if self.type in _ENDS and len(keys):
            lowest, highest = _ENDS[self.type]
            numbers = keys.cast(pa.int32()) if self.type == "date" else keys
            if pc.min(numbers).as_py() < lowest or pc.max(numbers).as_py() > highest:
                raise LeftOut(f"it has values that {_UNSURE.get(self.type, f'are no {self.type}')}")
        return keys

    def _paths_since(self, since: Optional[int]) -> Optional[set[str]]:
        try:
            return self._log.paths_since(since)
        except Exception as error:  # of drivers, of JSON
            raise IndexingError(
                f"can't list the data files of {self.table}: {in_words(error)}"
            ) from error

    def _name_in(self, file: pq.ParquetFile) -> Optional[str]:
        """The column's name in a file, as Spark finds it; ``None`` if all its values are NULL."""
        wanted = self.field_id
        names = [name for name in file.schema_arrow.names if name.casefold() == wanted.casefold()]
        if len(names) > 1 or any(name.lower() != wanted.lower() for name in names):
            raise LeftOut("it has several columns of one name, in any case")
        if not names and self._has_default:
            raise LeftOut("it was written before the column was added, with a default value")
        if names and self.type == "date" and _LEGACY_DATES in (file.metadata.metadata or {}):
            raise LeftOut("its dates are of the Julian calendar")
        return names[0] if names else None


def _why_left_out(path: str) -> str:
    """Why a file can't be covered, by its path in the log; empty if it can."""
    if _OUTSIDE.match(path) or _OUTSIDE.match(unquote(path)):
        return "it is outside the table's folder"
    if "\ufffd" in unquote(path):
        return "its path is no UTF-8"
    return ""


def _mode(log: DeltaLog, name: str) -> str:
    """How the table's columns are found in its files; raises :class:`NotIndexable`."""
    version, features = log.reader
    if unknown := features - _UNDERSTOOD:
        raise NotIndexable(f"{name} has the feature {min(unknown)}, which an index can't consider")
    if any("coordinatedcommits" in each.lower() for each in log.configuration):
        raise NotIndexable(f"{name} has commits outside its log (coordinated commits)")
    if "parquet.field.id" in log.schema:
        raise NotIndexable(f"{name} has columns that Spark finds by field IDs (parquet.field.id)")
    mode = log.configuration.get(_MAPPING, "none")
    is_supported = version == 2 or (version >= 3 and "columnMapping" in features)
    if mode not in ("none", "name") or (mode == "name" and not is_supported):
        raise NotIndexable(
            f"{name} has {_MAPPING} = {mode!r}: an index needs 'name' or 'none', and a version of "
            "the protocol that knows it"
        )
    return mode


def _field(log: DeltaLog, name: str, column: str) -> Mapping[str, Any]:
    """The column to index; raises :class:`NotIndexable` if it can't have an index."""
    fields = _fields(log)
    found = [field for field in fields if field["name"].lower() == column.lower()]
    if len(found) != 1:
        why = "has no column" if not found else "has several columns, differing in case, named"
        raise NotIndexable(f"{name} {why} {column!r}: an index is of one column of the table")
    field = found[0]
    called = f"the column {field['name']} of {name}"
    if field["name"].lower() in {each.lower() for each in log.partition_columns}:
        raise NotIndexable(f"{called} is a partition column: statements prune by it without index")
    if why := _why_no_keys(field):
        raise NotIndexable(
            f"{called} {why}: keys of an index are whole numbers (tinyint, smallint, int, bigint), "
            "string or date"
        )
    return field


def _why_no_keys(field: Mapping[str, Any]) -> str:
    """Why a column's values can't be keys; empty if they can."""
    type_, told = field["type"], _told(field)
    exact = str(told.get("__CHAR_VARCHAR_TYPE_STRING", "")).lower()
    if not isinstance(type_, str) or type_ not in _TYPES:
        return f"has the type {type_ if isinstance(type_, str) else type_.get('type')}"
    if exact.startswith("char"):
        return f"has the type {exact}"
    if told.get("__COLLATIONS"):
        return "has a collation"
    return ""


def _physical(field: Mapping[str, Any], name: str, mode: str) -> str:
    """The column's name in the data files; raises :class:`NotIndexable`."""
    if mode == "none":
        return str(field["name"])
    found = _told(field).get(_PHYSICAL_NAME)
    if not isinstance(found, str) or not found:
        raise NotIndexable(f"the column {field['name']} of {name} has no {_PHYSICAL_NAME}")
    return found


def _fields(log: DeltaLog) -> list[dict[str, Any]]:
    return list(json.loads(log.schema)["fields"])


def _told(field: Mapping[str, Any]) -> Mapping[str, Any]:
    return field.get("metadata") or {}
