"""Iceberg tables, read with PyIceberg at their current snapshot.

PyIceberg finds columns by their numbers and applies delete files, as Iceberg does on Spark. What it
does not support it refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.metastores.hive_tables import UNKNOWN_SIZE, normal
from airflow_hive_opt.metastores.iceberg.layout import layout
from airflow_hive_opt.metastores.metastore import Remote
from airflow_hive_opt.statement.catalog import Column, Table
from airflow_hive_opt.statement.lake_formats import ICEBERG
from airflow_hive_opt.worker.files.columns import arrow_type
from airflow_hive_opt.worker.files.rows import MOST_IN_MEMORY, Rows
from airflow_hive_opt.worker.lakes.lake_table import LakeRows, LakeState
from airflow_hive_opt.worker.types import sql_type
from airflow_hive_opt.worker.unanswered import Unanswered

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionField
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask
    from pyiceberg.table import Table as Loaded
    from pyiceberg.table.sorting import SortField
    from pyiceberg.types import IcebergType

    from airflow_hive_opt.documents.storage import StoragePath

# Spark's names of Iceberg's types, of which the worker evaluates values, where they differ.
_SPELLINGS = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}


def at_metadata(name: str, location: str, open_path: Callable[[str], StoragePath]) -> IcebergTable:
    """The table whose current metadata is the file at ``location``; raises ``Unanswered``."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.serializers import FromInputFile
    from pyiceberg.table import StaticTable

    from airflow_hive_opt.worker.lakes.path_io import PathIO

    io = PathIO(open_path)
    try:
        metadata = FromInputFile.table_metadata(io.new_input(location))
    except Exception as error:  # of drivers, of JSON, of other versions of Iceberg
        raise Unanswered(f"can't read {location} of {name}: {error}") from error
    loaded = StaticTable((name,), metadata, location, io, NoopCatalog(name))
    return IcebergTable(name, loaded)


def in_metastore(
    name: str, own_name: str, metastore: Remote, open_path: Callable[[str], StoragePath]
) -> IcebergTable:
    """The table whose entry in the metastore names its current metadata.

    ``own_name`` is the table's name in the metastore. Raises ``Unanswered`` and ``MetastoreError``.
    """
    table = metastore.table(own_name)
    storage = None if table is None else metastore.storage(table)
    location = None if storage is None else storage.parameters.get("metadata_location")
    if table is None or table.provider != ICEBERG or not location:
        raise Unanswered(f"{name} is no Iceberg table of the metastore")
    return at_metadata(name, location, open_path)


def in_folder(name: str, folder: str, open_path: Callable[[str], StoragePath]) -> IcebergTable:
    """The table in a folder of a Hadoop catalog; raises ``Unanswered``.

    The hint may name an old version: the current one is the last that follows it.
    """
    metadata = f"{folder}/metadata"
    try:
        hint = open_path(f"{metadata}/version-hint.text")
        hint.fs.invalidate_cache()
        version = int(hint.fs.cat_file(hint.path))
        listed = {
            str(path).rpartition("/")[2]
            for path in hint.fs.ls(open_path(metadata).path, detail=False)
        }
    except Exception as error:  # of drivers
        raise Unanswered(f"there is no version of {name} in {folder}: {error}") from error
    current = None
    for at in range(version, version + len(listed) + 1):
        names = listed.intersection((f"v{at}.metadata.json", f"v{at}.gz.metadata.json"))
        if len(names) != 1:
            break
        (current,) = names
    if current is None:
        raise Unanswered(f"there is no version of {name} in {folder}")
    return at_metadata(name, f"{metadata}/{current}", open_path)


def of_rest_catalog(
    name: str,
    catalog: str,
    identifier: Sequence[str],
    properties: Mapping[str, str],
    open_path: Callable[[str], StoragePath] | None,
) -> IcebergTable:
    """The table that a REST catalog gives; raises ``Unanswered``.

    ``open_path`` opens its files; ``None`` for the credentials that the catalog or its
    ``properties`` give.
    """
    from pyiceberg.catalog import load_catalog

    try:
        client = load_catalog(catalog, **{**properties, "type": "rest"})
        loaded = client.load_table(tuple(identifier))
    except Exception as error:  # noqa: BLE001 - its text may name credentials
        raise Unanswered(
            f"the catalog {catalog} does not give {name}: {type(error).__name__}"
        ) from None
    if open_path is not None:
        from airflow_hive_opt.worker.lakes.path_io import PathIO

        loaded.io = PathIO(open_path)
    return IcebergTable(name, loaded)


@dataclass(frozen=True)
class IcebergTable:
    """A :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`.

    ``name`` is that of Spark's catalog, namespace and table.
    """

    name: str
    loaded: Loaded

    @property
    def described(self) -> Table:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        snapshot = self.loaded.current_snapshot()
        summary = None if snapshot is None else snapshot.summary
        size = None if summary is None else summary.get("total-files-size")
        schema, metadata = self.loaded.schema(), self.loaded.metadata
        own = layout(
            [{"id": field.field_id, "name": field.name} for field in schema.fields],
            [_fields(spec.fields) for spec in metadata.specs().values()],
            _fields(metadata.spec().fields),
            _fields(metadata.sort_order().fields),
        )
        return Table(
            self.name,
            tuple(Column(each.name.lower(), _type(each.field_type)) for each in schema.fields),
            total_bytes=int(size or UNKNOWN_SIZE) if snapshot is not None else 0,
            location=normal(self.loaded.location()),
            provider=ICEBERG,
            clustered_by=own.clustered_by,
            partitioned_by=own.partitioned_by,
        )

    @property
    def uuid(self) -> str:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        return str(self.loaded.metadata.table_uuid)

    def state(self) -> LakeState:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`.

        A renamed column makes no snapshot, but another file of metadata.
        """
        if self.loaded.current_snapshot() is None:
            raise Unanswered(f"{self.name} has no snapshot")
        if not self.loaded.metadata_location:
            raise Unanswered(f"{self.name} has no metadata that can be compared")
        found = self._at()
        metadata = str(self.loaded.metadata_location)
        return LakeState({"snapshot": found.snapshot, "metadata": metadata}, found)

    def read(self, names: Sequence[str], most_bytes: int) -> LakeRows:
        """See :class:`~airflow_hive_opt.worker.lakes.lake_table.LakeTable`."""
        import pyarrow as pa

        snapshot = self.loaded.current_snapshot()
        if snapshot is None:  # then the map join can't tell whether it has changed
            raise Unanswered(f"{self.name} has no snapshot")
        actual = self._actual(names)
        try:
            scan = self.loaded.scan(selected_fields=tuple(actual.values()) or ("*",))
            tasks = list(scan.plan_files())
            self._check(tasks, most_bytes)
            if not names:
                rows = pa.table({})
                return LakeRows(Rows(rows, self._count(tasks), frozenset(), ()), (), self._at())
            tables, room = [], MOST_IN_MEMORY
            for task in tasks:
                tables.append(self._table(task, scan.projection(), actual))
                room -= tables[-1].nbytes
                if room < 0:
                    raise Unanswered(
                        f"{self.name} needs more than {MOST_IN_MEMORY} bytes of memory, the maximum"
                    )
        except (Unanswered, MemoryError):
            raise
        except Exception as error:  # of PyIceberg, of PyArrow, of drivers
            raise Unanswered(f"can't read {self.name}: {error}") from error
        types = {column.name: column.type for column in self.described.columns}
        wanted = pa.schema([(name, _arrow(types[name])) for name in names])
        table = pa.concat_tables([each.cast(wanted) for each in tables]) if tables else None
        table = wanted.empty_table() if table is None else table
        for column in table.columns:
            column.validate(full=True)  # texts must be UTF-8
        return LakeRows(Rows(table, table.num_rows, frozenset(), ()), (), self._at())

    def _at(self) -> Snapshot:
        snapshot = self.loaded.current_snapshot()
        assert snapshot is not None
        return Snapshot(self.name, str(snapshot.snapshot_id))

    def _actual(self, names: Sequence[str]) -> dict[str, str]:
        """The table's column names as written, by their names in lower case."""
        found: dict[str, list[str]] = {}
        for field in self.loaded.schema().fields:
            found.setdefault(field.name.lower(), []).append(field.name)
            has_default = field.initial_default is not None
            if has_default and field.name.lower() in names:
                raise Unanswered(f"the column {field.name} of {self.name} has a default value")
        if any(len(found[name]) > 1 for name in names):
            raise Unanswered(f"the names of two columns of {self.name} differ in case alone")
        return {name: found[name][0] for name in names}

    def _check(self, tasks: Sequence[FileScanTask], most_bytes: int) -> None:
        deletes = {each.file_path: each for task in tasks for each in task.delete_files}
        files = [*(task.file for task in tasks), *deletes.values()]
        if sum(file.file_size_in_bytes for file in files) > most_bytes:
            raise Unanswered(f"{self.name} has more than {most_bytes} bytes, the maximum")
        if any(file.key_metadata for file in files):
            raise Unanswered(f"{self.name} is encrypted")

    def _count(self, tasks: Sequence[FileScanTask]) -> int:
        if any(task.delete_files for task in tasks):
            raise Unanswered(f"{self.name} has deleted rows, so the worker can't count its rows")
        return sum(task.file.record_count for task in tasks)

    def _table(self, task: FileScanTask, schema: Schema, actual: Mapping[str, str]) -> pa.Table:
        """The rows of one file; Iceberg's reader prefers the values of its partition."""
        import pyarrow as pa
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.transforms import IdentityTransform

        metadata = self.loaded.metadata
        rows = ArrowScan(metadata, self.loaded.io, schema, AlwaysTrue()).to_table([task])
        constants: dict[int, Any] = {}
        for at, field in enumerate(metadata.specs()[task.file.spec_id].fields):
            if isinstance(field.transform, IdentityTransform):
                constants[field.source_id] = task.file.partition[at]
        columns = []
        for name in actual.values():
            number = schema.find_field(name).field_id
            column = rows.column(name)
            if number in constants:
                value = pa.scalar(constants[number], column.type)
                column = pa.repeat(value, rows.num_rows)
            columns.append(column)
        return pa.Table.from_arrays(columns, names=list(actual))


def _fields(fields: Iterable[PartitionField | SortField]) -> list[dict[str, Any]]:
    """The fields of a partition spec or of a sort order, as Iceberg's JSON has them."""
    return [
        {
            "source-id": each.source_id,
            "transform": str(each.transform),
            "field-id": getattr(each, "field_id", None),
            "name": getattr(each, "name", None),
        }
        for each in fields
    ]


def _type(type_: IcebergType) -> str:
    """Spark's name of a type; Iceberg's own for one that the worker does not evaluate."""
    name = str(type_)
    return _SPELLINGS.get(name, name.replace(" ", ""))


def _arrow(hive: str) -> pa.DataType:
    type_ = sql_type(hive)
    assert type_ is not None
    return arrow_type(type_)
