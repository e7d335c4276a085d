"""The rows of a table's files and of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.small_tables import digest_of_files
from airflow_hive_opt.metastores.hive_tables import is_transactional
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.metastores.storage import Storage
from airflow_hive_opt.statement.catalog import Table
from airflow_hive_opt.worker.files.columns import arrow_type, check_room
from airflow_hive_opt.worker.files.folder import DataFile, data_files
from airflow_hive_opt.worker.files.orc import read_orc
from airflow_hive_opt.worker.files.parquet import read_parquet
from airflow_hive_opt.worker.files.text import read_text, separators
from airflow_hive_opt.worker.types import SqlType, sql_type
from airflow_hive_opt.worker.unanswered import NotUnderstood, Unanswered

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hive_opt.documents.storage import StoragePath

# Other options choose files by name or time, read folders inside, or convert dates.
_WITHOUT_EFFECT = frozenset(
    {
        *("path", "compression", "parquet.compression", "orc.compress", "orc.compression"),
        *("serialization.format", "field.delim", "colelem.delim", "mapkey.delim", "line.delim"),
    }
)
FORMATS = ("parquet", "orc", "text")
MOST_IN_MEMORY = 128 << 20
"""Bytes of one table's rows in memory. The database would not hold more, either."""
MOST_SECONDS = 30
"""Of listing and reading one table's files, one after the other; Spark does it in parallel."""


@dataclass(frozen=True)
class Part:
    """The table's folder, or that of a partition with its values in column order.

    ``files`` are the files to read; ``None`` for all files of the folder.
    """

    storage: Storage
    values: tuple[str | None, ...] = ()
    files: tuple[DataFile, ...] | None = None


@dataclass(frozen=True)
class Rows:
    """The rows of a table. ``texts`` are the columns whose values are still texts.

    ``folders`` has pairs of a location and the digest of the files that were read there.
    """

    table: pa.Table
    count: int
    texts: frozenset[str]
    folders: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Reader:
    """Reads the columns ``names`` of a table, and at most ``most`` bytes of its files."""

    table: Table
    names: Sequence[str]
    open_path: Callable[[str], StoragePath]
    most: int

    def rows(self, parts: Sequence[Part]) -> Rows:
        """The rows of all parts; raises :class:`Unanswered`."""
        import pyarrow as pa

        data = [column for column in self.table.columns if column.name in self.names]
        latest = monotonic() + MOST_SECONDS
        listed = []
        for part in parts:
            self._check_time(latest)
            listed.append((part, self._files(part)))
        files = [(part, file) for part, found in listed for file in found]
        if sum(file.size for _, file in files) > self.most:
            raise Unanswered(f"{self.table.name} has more than {self.most} bytes, the maximum")
        formats = {part.storage.format for part in parts}
        if len(formats) > 1:
            raise Unanswered(f"{self.table.name} has partitions of several formats")
        texts = {column.name for column in self.table.partition_columns} & set(self.names)
        if formats == {"text"}:
            texts |= {column.name for column in data}
        schema = pa.schema([(name, self._arrow(name, name in texts)) for name in self.names])
        read, room = [], MOST_IN_MEMORY
        for part, file in files:
            self._check_time(latest)
            try:
                table, count = self._file(part, file, schema, room)
            except MemoryError:
                raise
            except Unanswered as why:
                raise Unanswered(f"{why}: {file.path}") from why
            except Exception as error:  # of PyArrow, of drivers, of compressed files
                raise Unanswered(f"can't read {self.table.name}: {error}: {file.path}") from error
            room -= table.nbytes
            read.append((table, count))
        count = sum(count for _, count in read)
        table = pa.concat_tables([table for table, _ in read]) if read else schema.empty_table()
        folders = tuple((part.storage.location, digest_of_listed(found)) for part, found in listed)
        return Rows(table, count, frozenset(texts), folders)

    def _check_time(self, latest: float) -> None:
        if monotonic() > latest:
            raise Unanswered(
                f"reading {self.table.name} takes more than {MOST_SECONDS} s, the maximum"
            )

    def _files(self, part: Part) -> Sequence[DataFile]:
        if part.files is not None:
            return part.files
        return data_files(self.open_path(part.storage.location))

    def _arrow(self, name: str, as_text: bool) -> pa.DataType:
        types = {column.name: column.type for column in self.table.all_columns}
        type_ = sql_type("string" if as_text else types[name])
        assert type_ is not None
        return arrow_type(type_)

    def _file(
        self, part: Part, file: DataFile, schema: pa.Schema, room: int
    ) -> tuple[pa.Table, int]:
        """The columns of one file, and its number of rows; ``room`` is memory, in bytes."""
        import pyarrow as pa

        storage = part.storage
        names = [column.name for column in self.table.columns]
        wanted: dict[str, SqlType] = {}
        for column in self.table.columns:
            type_ = sql_type(column.type) if column.name in self.names else None
            if type_ is not None:
                wanted[column.name] = type_
        with file.open() as opened:
            if storage.format == "parquet":
                found, count = read_parquet(opened, wanted, room)
            elif storage.format == "orc":
                found, count = read_orc(opened, wanted, names, room)
            else:
                by = separators(storage)
                most = min(self.most, room)
                found, count = read_text(opened, file.path, list(wanted), names, by, most)
        missing = wanted.keys() - found.keys()
        if missing and has_defaults(storage.parameters):
            raise Unanswered(f"a file has no column {min(missing)}, which may have a default value")
        values = dict(zip((c.name for c in self.table.partition_columns), part.values, strict=True))
        same = [values.get(field.name) or "" for field in schema if field.name not in found]
        check_room(room - count * sum(8 + len(value) for value in same))
        columns = []
        for field in schema:
            if field.name in found:
                column = found[field.name]
                column.validate(full=True)  # texts must be UTF-8
            elif field.name in values and values[field.name] is not None:
                column = pa.repeat(pa.scalar(values[field.name], pa.string()), count)
            else:
                column = pa.nulls(count, field.type)
            columns.append(column)
        return pa.Table.from_arrays(columns, schema=schema), count


def digest_of_listed(files: Sequence[DataFile]) -> str:
    """The digest of the data files in one folder."""
    return digest_of_files((file.name, file.size, file.changed) for file in files)


def has_defaults(parameters: Mapping[str, str]) -> bool:
    """Whether columns of a table may have default values, by the schema that Spark has stored."""
    prefix = "spark.sql.sources.schema"
    stored = sorted(name for name in parameters if name.startswith(prefix))
    # the parts of a long schema have numbers without leading zeros
    stored.sort(key=lambda name: (len(name), name))
    return "_DEFAULT" in "".join(parameters[name] for name in stored)


def parts_of(
    table: Table, storage: Storage, partitions: Sequence[tuple[Partition, Storage]]
) -> list[Part]:
    """The folders of a table."""
    if not table.partition_columns:
        return [Part(storage)]
    found = []
    for partition, own in partitions:
        if len(partition.values) != len(table.partition_columns):
            raise Unanswered(f"a partition of {table.name} has other partition columns")
        check_readable(table.name, own)
        if own.serde and None in partition.values:
            raise Unanswered(f"the worker does not read the default partition of {table.name}")
        found.append(Part(own, partition.values))
    return found


def check_readable(name: str, storage: Storage) -> None:
    """Raises :class:`NotUnderstood` for a table ``name`` that the worker does not read."""
    if storage.format not in FORMATS:
        raise NotUnderstood(f"the format of {name}, {storage.format or 'which is unknown'}")
    parameters = {name.lower(): value for name, value in storage.parameters.items()}
    if is_transactional(parameters):
        raise NotUnderstood(f"{name}, a transactional table")
    if any("parquet.field.id" in value for value in parameters.values()):
        raise NotUnderstood(f"{name}, whose columns have field ids")
    if "parquet.column.index.access" in parameters:
        raise NotUnderstood(f"{name}, whose columns are found by their positions")
    if storage.format == "text":
        separators(storage)
    elif other := storage.properties.keys() - _WITHOUT_EFFECT:
        raise NotUnderstood(f"the option {min(other)} of {name}")
