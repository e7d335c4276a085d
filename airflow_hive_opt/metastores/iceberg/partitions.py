"""Which required partitions an Iceberg table has, read from its manifests without Spark.

A manifest lists data files with their partition values. PyIceberg's ``scan(row_filter=...)`` is not
used here: with up to 200 values it also compares them with the lowest and highest value of each
file's columns, so the answer would depend on the number of keys, and it derives what is left of the
filter again for each file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Callable

from airflow_hive_opt.metastores.required import Required, Tuples
from airflow_hive_opt.statement.types import family

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.types import NestedField, PrimitiveType

_EPOCH = date(1970, 1, 1)
# What PyIceberg calls the types that keys can have.
_ICEBERG_TYPES = {"integer": ("int", "long"), "string": ("string",), "date": ("date",)}


class UnexpectedTableError(ValueError):
    """The table is not as it was when the keys were collected; the message says what differs."""


@dataclass(frozen=True)
class _Field:
    """A field of a partition spec: its position there and the required column that it reads.

    ``lowest_first`` are the partition values of all keys, sorted.
    """

    position: int
    column: int
    transform: Callable[[Any], Any]
    type: PrimitiveType
    lowest_first: Sequence[Any]


def missing_from(table: Table, required: Required) -> Tuples:
    """The required tuples for which no data file of the current snapshot has the partition.

    A file has it if its partition values are those of the tuple under the transforms of its spec.
    A file of an earlier spec must also enclose the tuple's values with the lowest and highest
    value of each column that its spec does not partition as the current one does. Raises
    :class:`UnexpectedTableError`, and errors of PyIceberg and of the storage.
    """
    from pyiceberg.manifest import ManifestContent
    from pyiceberg.utils.concurrent import ExecutorFactory

    snapshot = table.current_snapshot()
    if snapshot is None or not required.tuples:
        return required.tuples
    schema = table.schema()
    columns = [_column(schema, required, at) for at in range(len(required.columns))]
    rows = [tuple(map(_stored, row)) for row in required.tuples]
    manifests = [
        manifest
        for manifest in snapshot.manifests(table.io)
        if manifest.content == ManifestContent.DATA
    ]
    specs, current = table.specs(), _transforms(table.spec())
    layouts = {
        number: _Layout(specs[number], columns, rows, current)
        for number in {manifest.partition_spec_id for manifest in manifests}
    }

    def present_in(manifest: ManifestFile) -> set[int]:
        layout = layouts[manifest.partition_spec_id]
        if not layout.may_have(manifest):
            return set()
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        return {row for entry in entries for row in layout.rows_in(entry.data_file)}

    present: set[int] = set().union(*ExecutorFactory.get_or_create().map(present_in, manifests))
    return tuple(row for at, row in enumerate(required.tuples) if at not in present)


class _Layout:
    """The required rows as the partition values that files of one partition spec have."""

    def __init__(
        self,
        spec: PartitionSpec,
        columns: Sequence[NestedField],
        rows: Sequence[tuple[Any, ...]],
        current: dict[int, set[str]],
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._fields = list(_fields(spec, columns, rows))
        own = _transforms(spec)
        # The columns of which a file's partition value says less than one of the current spec.
        self._vague = [
            at
            for at, column in enumerate(columns)
            if not _determines(own.get(column.field_id), current.get(column.field_id))
        ]
        # By partition value the rows, and their values in the first vague column, which are sorted.
        self._groups: dict[tuple[Any, ...], tuple[list[int], list[Any]]] = {}
        first = self._vague[0] if self._vague else 0
        for number in sorted(range(len(rows)), key=lambda number: rows[number][first]):
            row = rows[number]
            value = tuple(field.transform(row[field.column]) for field in self._fields)
            numbers, values = self._groups.setdefault(value, ([], []))
            numbers.append(number)
            values.append(row[first])

    def may_have(self, manifest: ManifestFile) -> bool:
        """Whether the manifest's summary allows a file with one of the rows."""
        from pyiceberg.conversions import from_bytes

        if not manifest.partitions:
            return True
        for field in self._fields:
            summary = manifest.partitions[field.position]
            if summary.lower_bound is None or summary.upper_bound is None:
                return False  # all of its values are NULL
            lower = from_bytes(field.type, summary.lower_bound)
            at = bisect_left(field.lowest_first, lower)
            if at == len(field.lowest_first):
                return False
            if field.lowest_first[at] > from_bytes(field.type, summary.upper_bound):
                return False
        return True

    def rows_in(self, file: DataFile) -> Sequence[int]:
        """The numbers of the rows whose partition the file has."""
        value = tuple(file.partition[field.position] for field in self._fields)
        nothing: tuple[Sequence[int], Sequence[Any]] = (), ()
        found, values = self._groups.get(value, nothing)
        for at in self._vague if found else ():
            bounds = _bounds(file, self._columns[at])
            if bounds is None:
                return ()
            lower, upper = bounds
            if at == self._vague[0]:
                found = found[bisect_left(values, lower) : bisect_right(values, upper)]
            else:
                found = [number for number in found if lower <= self._rows[number][at] <= upper]
        return found


def _fields(
    spec: PartitionSpec, columns: Sequence[NestedField], rows: Sequence[tuple[Any, ...]]
) -> Iterator[_Field]:
    """The fields of the spec that read a required column."""
    ids = [column.field_id for column in columns]
    for position, field in enumerate(spec.fields):
        if field.source_id not in ids or str(field.transform) == "void":
            continue
        at = ids.index(field.source_id)
        source = columns[at].field_type
        transform: Any = field.transform.transform(source)
        type_: Any = field.transform.result_type(source)
        yield _Field(position, at, transform, type_, sorted({transform(row[at]) for row in rows}))


def _transforms(spec: PartitionSpec) -> dict[int, set[str]]:
    """The transforms of each source column, by the column's number."""
    found = defaultdict(set)
    for field in spec.fields:
        if str(field.transform) != "void":
            found[field.source_id].add(str(field.transform))
    return dict(found)


def _determines(own: set[str] | None, current: set[str] | None) -> bool:
    """Whether partition values by the first transforms determine those by the second ones."""
    if not own:
        return False
    return "identity" in own or (current is not None and current <= own)


def _bounds(file: DataFile, column: NestedField) -> tuple[Any, Any] | None:
    """The file's lowest and highest value of the column, ``None`` if they are not known."""
    from pyiceberg.conversions import from_bytes

    type_: Any = column.field_type
    lower = (file.lower_bounds or {}).get(column.field_id)
    upper = (file.upper_bounds or {}).get(column.field_id)
    if lower is None or upper is None:
        return None
    return from_bytes(type_, lower), from_bytes(type_, upper)


def _column(schema: Schema, required: Required, at: int) -> NestedField:
    """The table's column for a required one; its name may be written in another case."""
    name, type_ = required.columns[at], required.types_of_columns[at]
    try:
        found = schema.find_field(name, case_sensitive=False)
    except ValueError:
        raise UnexpectedTableError(f"{required.table} has no column {name}") from None
    expected = _ICEBERG_TYPES.get(family(type_) or "", ("timestamptz",))
    if str(found.field_type) not in expected:
        raise UnexpectedTableError(
            f"the column {name} of {required.table} is a {found.field_type} in the catalog of the "
            f"connection, but Spark reads it as {type_}"
        )
    return found


def _stored(value: Any) -> Any:
    """A value as Iceberg stores it: a date is the number of days since 1970."""
    return (value - _EPOCH).days if isinstance(value, date) else value
