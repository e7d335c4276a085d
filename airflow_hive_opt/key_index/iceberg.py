"""A column of an Iceberg table: its data files by PyIceberg, and their keys by PyArrow.

Deleted rows do not matter: their keys only let a scan read a file too many. So delete files are
not read, and tables with any kind of them can have an index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Optional

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
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField

# Spark's names of the types that keys can have.
_TYPES = {"int": "int", "long": "bigint", "date": "date", "string": "string"}
_FIELD_ID = b"PARQUET:field_id"
_THREADS = 8


class IcebergColumn:
    """An :class:`~airflow_hive_opt.key_index.indexed_column.IndexedColumn`.

    :param loaded: the table, at its current snapshot.
    :param name: the table's name, for messages.
    :param column: the column's name, in any case.

    Raises :class:`~airflow_hive_opt.key_index.indexed_column.NotIndexable` for a column that
    can't have an index.
    """

    def __init__(self, loaded: Table, name: str, column: str) -> None:
        field = _field(loaded, name, column)
        self._loaded = loaded
        self._default = field.initial_default
        self.table_uuid = str(loaded.metadata.table_uuid)
        self.table = name
        self.field_id = str(field.field_id)
        self.column = field.name
        self.type = _TYPES[str(field.field_type)]
        snapshot = loaded.current_snapshot()
        self.snapshot_id: Optional[int] = None if snapshot is None else snapshot.snapshot_id

    @property
    def why_unused(self) -> str:
        """See ``IndexedColumn``."""
        specs = self._loaded.specs().values()
        fields = self._loaded.spec().fields
        if any(
            self._gives_values(each) and all(_has(spec, each) for spec in specs) for each in fields
        ):
            return ""
        return (
            f"no statement can use the index of {self.column} of {self.table}: in all layouts that "
            "the table has had, a partition field must have the values of a column, or the years, "
            "months, days or hours of a date or a timestamp with time zone"
        )

    def _gives_values(self, field: PartitionField) -> bool:
        """Whether a partition field has values that become conditions on a column."""
        from pyiceberg.transforms import IdentityTransform, TimeTransform
        from pyiceberg.types import DateType, TimestamptzType

        if isinstance(field.transform, TimeTransform):
            source = self._loaded.schema().find_field(field.source_id).field_type
            return isinstance(source, (DateType, TimestamptzType))
        return isinstance(field.transform, IdentityTransform)

    def files(self, since: Optional[int]) -> list[DataFile]:
        """See ``IndexedColumn``: a manifest that has only files of ``since`` is not read."""
        metadata = self._loaded.metadata
        earlier = None if since is None else metadata.snapshot_by_id(since)
        with self._listing():
            known = self._manifests([earlier]).keys()
            manifests = self._manifests([self._loaded.current_snapshot()])
            return self._files_of(
                each
                for path, each in manifests.items()
                if path not in known and not self._repeats(each, since)
            )

    def _repeats(self, manifest: ManifestFile, since: Optional[int]) -> bool:
        """Whether all files of a manifest were in the snapshot ``since`` too.

        A commit that removes some files of a manifest writes another one with the others.
        """
        of = manifest.added_snapshot_id
        if since is None or of is None or manifest.added_files_count != 0:  # None in old tables
            return False
        writer = self._loaded.metadata.snapshot_by_id(of)
        return writer is not None and writer.parent_snapshot_id == since

    def paths_of_all_snapshots(self) -> set[str]:
        """See ``IndexedColumn``."""
        with self._listing():
            manifests = self._manifests(self._loaded.metadata.snapshots)
            return {file.path for file in self._files_of(manifests.values())}

    def keys_of(self, path: str) -> pa.Array:
        """See ``IndexedColumn``."""
        with self._loaded.io.new_input(path).open() as source:
            return keys_in(source, self.type, self._name_in)

    def _name_in(self, file: pq.ParquetFile) -> Optional[str]:
        """The column's name in a file; ``None`` if all its values are NULL.

        A file without field IDs can't be covered: Iceberg reads it by the table's name mapping,
        which may give its columns to other fields at any time.
        """
        ids = {
            field.name: int(field.metadata[_FIELD_ID])
            for field in file.schema_arrow
            if _FIELD_ID in (field.metadata or {})
        }
        if not ids:
            raise LeftOut("its columns have no field IDs of Iceberg")
        found = [name for name, id_ in ids.items() if str(id_) == self.field_id]
        if len(found) > 1 or len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
            raise LeftOut("it has several columns of one name")
        if not found and self._default is not None:
            raise LeftOut("it was written before the column was added, with a default value")
        return found[0] if found else None

    @contextmanager
    def _listing(self) -> Iterator[None]:
        """Raises :class:`IndexingError` for errors of PyIceberg and of the storage."""
        try:
            yield
        except Exception as error:
            raise IndexingError(
                f"can't list the data files of {self.table}: {in_words(error)}"
            ) from error

    def _manifests(self, snapshots: Iterable[Optional[Snapshot]]) -> dict[str, ManifestFile]:
        """The manifests of snapshots that list data files, by their paths, which never change."""
        from pyiceberg.manifest import ManifestContent

        return {
            manifest.manifest_path: manifest
            for snapshot in snapshots
            if snapshot is not None
            for manifest in snapshot.manifests(self._loaded.io)
            if manifest.content == ManifestContent.DATA
        }

    def _files_of(self, manifests: Iterable[ManifestFile]) -> list[DataFile]:
        from pyiceberg.manifest import FileFormat
        from pyiceberg.transforms import IdentityTransform

        by_partition = {
            number
            for number, spec in self._loaded.specs().items()
            for field in spec.fields
            if str(field.source_id) == self.field_id
            and isinstance(field.transform, IdentityTransform)
        }

        def listed(manifest: ManifestFile) -> list[DataFile]:
            found = []
            for entry in manifest.fetch_manifest_entry(self._loaded.io, discard_deleted=True):
                file, left_out = entry.data_file, ""
                if file.file_format != FileFormat.PARQUET:
                    left_out = f"it has the format {file.file_format.value}, not PARQUET"
                elif file.key_metadata:
                    left_out = "it is encrypted"
                elif manifest.partition_spec_id in by_partition:
                    left_out = "its partition has the column's value"
                found.append(DataFile(file.file_path, file.record_count, left_out))
            return found

        with ThreadPoolExecutor(_THREADS, "manifests") as threads:
            return [file for files in threads.map(listed, manifests) for file in files]


def _has(spec: PartitionSpec, field: PartitionField) -> bool:
    """Whether a layout has the field, perhaps by another name."""
    return any(
        (each.field_id, each.source_id, each.transform)
        == (field.field_id, field.source_id, field.transform)
        for each in spec.fields
    )


def _field(loaded: Table, name: str, column: str) -> NestedField:
    """The column to index; raises :class:`NotIndexable` if it can't have an index."""
    fields = loaded.schema().fields
    found = [field for field in fields if field.name.lower() == column.lower()]
    if len(found) != 1:
        why = "has no column" if not found else "has several columns, differing in case, named"
        raise NotIndexable(f"{name} {why} {column!r}: an index is of one column of the table")
    field = found[0]
    if str(field.field_type) not in _TYPES:
        raise NotIndexable(
            f"the column {field.name} of {name} has the type {field.field_type}: keys of an index "
            "are whole numbers (int, long), string or date"
        )
    if "table_uuid" not in loaded.metadata.model_fields_set:
        raise NotIndexable(f"{name} has no UUID: write to it with a newer version of Iceberg")
    return field
