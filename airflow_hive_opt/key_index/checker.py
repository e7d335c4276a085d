"""Checks an index, and what a statement's descriptor made of it, against the rows of the table.

This is for those who trust neither the builder, nor the lookup, nor the planner: it shares no code
with them. It reads the whole column, by PyIceberg's own reader if the table is one of Iceberg's, so
it is slow. Each function returns problems as text; there are none if nothing is lost.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Union
from urllib.parse import quote

from airflow_hive_opt.key_index.checked_tables import (
    CheckedDelta,
    CheckedIceberg,
    CheckedTable,
    NotCheckedError,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

    from airflow_hive_opt.documents.storage import StoragePath


def problems_of_index(
    table: Union[Table, CheckedDelta], column: str, root: StoragePath
) -> list[str]:
    """Data files of the current snapshot that hold keys which the index does not give for them.

    :param root: the configured ``index_path``.

    Raises :class:`NotCheckedError`, and errors of PyArrow, of PyIceberg and of the storage.
    """
    import pyarrow.compute as pc

    of = _checked(table)
    table_id, column_id = of.index_of(column)
    folder = root / table_id / quote(column_id, safe="")
    manifest = _document(folder / "manifest.json")
    files = of.files(None)
    problems = []
    for part in manifest["parts"]:
        for path, keys in _indexed(folder, part):
            if path not in files:
                continue
            (rows,) = of.read(files[path], [column])
            held = pc.drop_null(_comparable(rows))
            lost = held.filter(pc.invert(pc.is_in(held, keys)))
            if len(lost):
                problems.append(
                    f"{path} holds the key {lost[0].as_py()!r} and {len(pc.unique(lost)) - 1} more "
                    "that the index does not give for it"
                )
    return problems


def problems_of_descriptor(
    table: Union[Table, CheckedDelta], column: str, path: StoragePath
) -> list[str]:
    """Rows with one of a scan's keys that the conditions by an index of the column exclude.

    ``path`` is that of the descriptor. The scans are those that read one of the table's snapshots.
    Deleted rows count as well. Raises as :func:`problems_of_index`.
    """
    document = _document(path)
    of = _checked(table)
    used = [use for use in document.get("index_uses", []) if use["code"] == "USED"]
    uses = [
        use
        for use in used
        if use["column"].lower() == column.lower()
        and of.has(use["snapshot"], use.get("table_id", ""))
    ]
    if not uses:
        raise NotCheckedError(f"{path} has no scan of this table by an index of {column}")
    problems = []
    for use in uses:
        # a row must have keys of all columns whose indexes the conditions come from
        columns = {each["column"].lower() for each in _of_scan(used, use["scan"])}
        found = _of_scan(document["index_filters"], use["scan"])
        # keys of another large table are among the conditions, and so is MERGE's list of keys
        lists = [
            each
            for each in found
            if each.get("guards_only")
            or (use.get("hop") and each["column"].lower() in columns and not each["is_range"])
        ]
        filters = [each for each in found if each not in lists]
        known = [*_of_scan(document["row_filters"], use["scan"]), *lists]
        keys = [each for each in known if each["column"].lower() in columns and _is_list(each)]
        if missing := columns - {each["column"].lower() for each in keys}:
            raise NotCheckedError(
                f"{path} does not list the keys of {', '.join(sorted(missing))}: it lists up to "
                "200 keys, and those of MERGE, UPDATE and DELETE"
            )
        for name, file in of.files(use["snapshot"]).items():
            if lost := _excluded(of, file, keys, filters):
                problems.append(
                    f"{name} holds {lost} rows with keys of {use['column']} that the "
                    f"conditions on {', '.join(each['column'] for each in filters)} exclude"
                )
    return problems


def _checked(table: Union[Table, CheckedDelta]) -> CheckedTable:
    return table if isinstance(table, CheckedDelta) else CheckedIceberg(table)


def _excluded(table: CheckedTable, file: Any, keys: Sequence[Any], filters: Sequence[Any]) -> int:
    """The number of rows of a file that have a key and do not fulfil all filters."""
    import pyarrow.compute as pc

    conditions = [*keys, *filters]
    columns = table.read(file, [each["column"] for each in conditions])
    fulfilled = [_fulfils(rows, each) for rows, each in zip(columns, conditions)]
    wanted = reduce(pc.and_, fulfilled[: len(keys)])
    kept = reduce(pc.and_, fulfilled[len(keys) :], wanted)
    return int((pc.sum(wanted).as_py() or 0) - (pc.sum(kept).as_py() or 0))


def _fulfils(rows: pa.ChunkedArray, condition: Any) -> pa.ChunkedArray:
    """For each row whether it fulfils a condition of the descriptor; never NULL."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = _comparable(rows)
    texts: Sequence[str] = condition["values"]
    if pa.types.is_large_binary(found.type):
        values = pa.array([text.encode() for text in texts], found.type)
    else:
        values = pa.array(texts, pa.string()).cast(found.type)
    if condition["is_range"]:
        result = pc.and_(found.is_valid(), False)
        for lowest, highest in zip(values[::2], values[1::2]):
            between = pc.and_(pc.greater_equal(found, lowest), pc.less_equal(found, highest))
            result = pc.or_(result, pc.fill_null(between, False))
    else:
        result = pc.is_in(found, values)
    if condition.get("or_null"):
        result = pc.or_(result, found.is_null())
    return result


def _comparable(rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers as 64 bits, times as microseconds, texts as bytes, and dates."""
    import pyarrow as pa

    if pa.types.is_integer(rows.type):
        return rows.cast(pa.int64())
    if pa.types.is_timestamp(rows.type):
        return rows.cast(pa.timestamp("us", rows.type.tz)).cast(pa.int64())
    if pa.types.is_date(rows.type):
        return rows.cast(pa.date32())
    if str(rows.type) in ("string", "large_string", "string_view"):
        return rows.cast(pa.large_binary())
    raise NotCheckedError(f"values of the type {rows.type} can't be compared")


def _indexed(folder: StoragePath, part: Any) -> Iterator[tuple[str, pa.Array]]:
    """The data files of a part, with their keys."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    def table_of(file: Any) -> pa.Table:
        data = (folder / file["name"]).read_bytes()
        if hashlib.sha256(data).hexdigest() != file["sha256"]:
            raise NotCheckedError(f"{folder / file['name']} is damaged")
        return pq.read_table(pa.BufferReader(data))

    pairs = table_of(part["pairs"]).sort_by("file")
    keys = pairs.column("key").combine_chunks()
    numbers = dict.fromkeys(range(part["files"]), 0)
    for counted in pc.value_counts(pairs.column("file").combine_chunks()).to_pylist():
        numbers[counted["values"]] = counted["counts"]
    start = 0
    for at, path in enumerate(table_of(part["paths"]).column("path").to_pylist()):
        yield path, keys.slice(start, numbers[at])
        start += numbers[at]


def _is_list(condition: Any) -> bool:
    """Whether a condition gives values one by one; ranges do if each has one value only."""
    values = condition["values"]
    return not condition["is_range"] or values[::2] == values[1::2]


def _of_scan(conditions: Sequence[Any], scan: Any) -> list[Any]:
    """The conditions of one scan."""
    return [each for each in conditions if each["scan"] == scan]


def _document(path: StoragePath) -> dict[str, Any]:
    """The fields of a document."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotCheckedError(f"there is no file {path}") from None
    try:
        return dict(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    except (ValueError, TypeError, OSError, EOFError):
        raise NotCheckedError(f"{path} is damaged") from None
