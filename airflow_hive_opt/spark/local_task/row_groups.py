"""Estimates by Parquet and ORC footers how much of the files a list of keys would skip.

A sample of a few files represents all files. Their footers hold the lowest and highest value of a
column in every row group (ORC: stripe). Parquet's column index says whether the pages inside are in
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar, Union

from py4j.java_gateway import JavaObject

from airflow_hive_opt.statement.types import INTEGER_BITS, family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Reading a footer takes some milliseconds.
FILES = 8
_GROUPS_A_FILE = 8
_EPOCH = date(1970, 1, 1)
_ORDERED = ("ASCENDING", "DESCENDING")
# ORC's names for the types that may be compared.
_ORC = {"string": ("string",), "date": ("date",)} | dict.fromkeys(INTEGER_BITS, tuple(INTEGER_BITS))

Bound = Union[int, str, date]
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class RowGroup:
    """Rows that Spark reads or skips together, in ``pages`` parts ordered by the column.

    ``low`` and ``high`` are ``None`` if the file has no statistics, or if all values are NULL.
    """

    rows: int
    low: Bound | None
    high: Bound | None
    pages: int = 1


def share_read(groups: Sequence[RowGroup], keys: Sequence[Bound]) -> float:
    """The share of the rows that must be read for a list of keys, 0 to 1.

    >>> groups = [RowGroup(100, 1, 50, pages=10), RowGroup(100, 51, 90), RowGroup(100, 91, 99)]
    >>> share_read(groups, [7, 8, 60])
    0.4
    """
    rows = sum(group.rows for group in groups)
    read = sum(group.rows * _share(group, keys) for group in groups)
    return read / rows if rows else 1.0


def share_of_range(groups: Sequence[RowGroup], low: Bound, high: Bound) -> float:
    """The share of the rows that a range of keys leaves to read, 0 to 1.

    >>> share_of_range([RowGroup(100, 1, 51, pages=10), RowGroup(100, 51, 90)], 11, 31)
    0.2
    """
    rows = sum(group.rows for group in groups)
    read = sum(group.rows * _share_of_range(group, low, high) for group in groups)
    return read / rows if rows else 1.0


def share_of_one(groups: Sequence[RowGroup]) -> float:
    """The average share of the rows to read for one existing key, 0 to 1.

    Tries the lowest value of every row group.
    """
    probes = [group.low for group in groups if group.low is not None]
    if not probes:
        return 1.0
    return sum(share_read(groups, [probe]) for probe in probes) / len(probes)


def _share(group: RowGroup, keys: Sequence[Bound]) -> float:
    hits = sum(1 for key in keys if _overlaps(group, key, key))
    return min(1.0, hits / group.pages)


def _share_of_range(group: RowGroup, low: Bound, high: Bound) -> float:
    """Assumes that the values are spread evenly over pages in order."""
    if not _overlaps(group, low, high):
        return 0.0
    bounds = [_number(bound) for bound in (low, high, group.low, group.high)]
    if group.pages == 1 or None in bounds:
        return 1.0
    first, last, lowest, highest = (bound for bound in bounds if bound is not None)
    inside = min(last, highest) - max(first, lowest)
    return min(1.0, max(inside / max(1, highest - lowest), 1 / group.pages))


def _number(bound: Bound | None) -> int | None:
    if isinstance(bound, date):
        return bound.toordinal()
    return bound if isinstance(bound, int) else None


def _overlaps(group: RowGroup, low: Any, high: Any) -> bool:
    if group.low is None or group.high is None:
        return True
    return bool(low <= group.high and group.low <= high)


def sampled_row_groups(
    session: SparkSession, format_: str, folders: Sequence[str], column: str, type_: str
) -> list[RowGroup]:
    """Row groups of some files below ``folders``, evenly spread; empty if nothing is known.

    ``format_`` is ``parquet`` or ``orc``; ``column`` is found in any case. Raises
    ``Py4JJavaError`` for files that can't be read.
    """
    read = {"parquet": _parquet, "orc": _orc}[format_]
    found: list[RowGroup] = []
    for status in _files(session, folders):
        found += read(session, status, column.lower(), type_)
    return found


def _files(session: SparkSession, folders: Sequence[str]) -> list[Any]:
    jvm: Any = session._jvm
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    found: list[Any] = []
    for folder in spread(folders, FILES):
        path = jvm.org.apache.hadoop.fs.Path(folder)
        system = path.getFileSystem(configuration)
        if system.exists(path):
            found += [status for status in system.listStatus(path) if _is_data(status)]
    return spread(found, FILES)


def _is_data(status: Any) -> bool:
    return status.isFile() and not status.getPath().getName().startswith(("_", "."))


def spread(items: Sequence[_Item], most: int) -> list[_Item]:
    """At most ``most`` of the items, evenly spread.

    >>> spread(range(10), 3)
    [2, 6]
    """
    step = max(1, -(-len(items) // most))
    return list(items[step // 2 :: step]) if len(items) > 1 else list(items)


def _parquet(session: SparkSession, status: Any, column: str, type_: str) -> Iterator[RowGroup]:
    jvm: Any = session._jvm
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromStatus(status, configuration)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
    try:
        at = None
        for block in spread(list(reader.getFooter().getBlocks()), _GROUPS_A_FILE):
            columns = block.getColumns()
            if at is None:
                names = (chunk.getPath().toDotString().lower() for chunk in columns)
                at = next((number for number, name in enumerate(names) if name == column), None)
            if at is None:
                return
            chunk = columns.get(at)
            statistics, index = chunk.getStatistics(), reader.readColumnIndex(chunk)
            ordered = index is not None and index.getBoundaryOrder().toString() in _ORDERED
            pages = index.getNullPages().size() if ordered else 1
            if statistics is None or not statistics.hasNonNullValue():
                yield RowGroup(block.getRowCount(), None, None)
                continue
            low, high = (
                _bound(bound, type_)
                for bound in (statistics.genericGetMin(), statistics.genericGetMax())
            )
            yield RowGroup(block.getRowCount(), low, high, pages)
    finally:
        reader.close()


def _bound(value: Any, type_: str) -> Bound | None:
    """A statistic as a value of the table's type; ``None`` if the file has another type."""
    if family(type_) == "integer":
        return value if isinstance(value, int) else None
    if type_ == "date":
        try:
            return _EPOCH + timedelta(days=value) if isinstance(value, int) else None
        except OverflowError:
            return None
    if isinstance(value, JavaObject):  # Parquet's Binary
        return str(value.toStringUsingUTF8())
    return value if isinstance(value, str) else None


def _orc(session: SparkSession, status: Any, column: str, type_: str) -> Iterator[RowGroup]:
    jvm: Any = session._jvm
    configuration = session._jsparkSession.sessionState().newHadoopConf()
    orc = jvm.org.apache.orc.OrcFile
    reader = orc.createReader(status.getPath(), orc.readerOptions(configuration))
    try:
        schema = reader.getSchema()
        names = [name.lower() for name in schema.getFieldNames()]
        if column not in names:
            return
        at = schema.getChildren().get(names.index(column)).getId()
        if schema.getChildren().get(names.index(column)).getCategory().getName() not in _ORC[type_]:
            return
        stripes = list(zip(reader.getStripes(), reader.getStripeStatistics()))
        for stripe, statistics in spread(stripes, _GROUPS_A_FILE):
            found = statistics.getColumnStatistics()[at]
            if not found.getNumberOfValues():
                yield RowGroup(stripe.getNumberOfRows(), None, None)
                continue
            bounds = (
                (found.getMinimumDayOfEpoch(), found.getMaximumDayOfEpoch())
                if type_ == "date"
                else (found.getMinimum(), found.getMaximum())
            )
            low, high = (_bound(bound, type_) for bound in bounds)
            yield RowGroup(stripe.getNumberOfRows(), low, high)
    finally:
        reader.close()
