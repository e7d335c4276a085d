"""Conditions on columns of a table from the partition values of its data files.

A field of the partitions has the column's own values, or counts its years, months, days or hours
since 1970. These become ranges of the column. Iceberg counts them in UTC, whatever the session's
time zone is. Delta has only the columns' own values, in texts; a time there is not in UTC.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Optional, Union

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.metastores.partitions import typed
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.spark.local_task.row_filters import row_filter_on
from airflow_hive_opt.spark.local_task.value_lists import is_replaced, joined
from airflow_hive_opt.statement.catalog import Column
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import DELTA
from airflow_hive_opt.statement.types import TIMESTAMP, family

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_IDENTITY = ""


@dataclass(frozen=True)
class PartitionField:
    """A field of the partitions: ``name`` in the metadata, ``visible`` is the column's name.

    ``transform`` is ``year``, ``month``, ``day`` or ``hour``; empty for the column's own values.
    """

    visible: str
    column: Column
    name: str
    transform: str = _IDENTITY

    @property
    def as_text(self) -> str:
        """The field's value in a row of the table ``files``, as text."""
        value = f"partition.{quote(self.name)}"
        if self.transform == "day":
            value = f"unix_date({value})"
        elif self.transform == _IDENTITY and self.column.type == TIMESTAMP:
            value = f"unix_micros({value})"
        return f"CAST({value} AS STRING)"

    def row_filter(
        self,
        relation: TableRelation,
        values: Collection[Optional[str]],
        most: int,
        source: SourceKeys,
    ) -> Optional[RowFilter]:
        """The condition that the column has one of the values; ``None`` if it can't be one.

        ``most`` is how many values a list may have.
        """
        type_ = self.column.type
        listed = sorted(value for value in values if value is not None)
        found: list[object] = []
        if self.transform != _IDENTITY:
            try:
                ranges = [_range(int(each), self.transform, type_) for each in listed]
            except (ValueError, OverflowError):  # beyond the years of Python
                return None
            found = [end for both in joined(sorted(ranges)) for end in both] if ranges else []
        elif len(listed) <= most and all(_is_literal(each, type_) for each in listed):
            found = [*listed]
        else:
            return None
        return row_filter_on(
            relation,
            self.visible,
            type_,
            found,
            is_range=self.transform != _IDENTITY and bool(found),
            source=source,
            or_null=None in values,
        )


def partition_fields(relation: TableRelation) -> list[PartitionField]:
    """The fields whose values can become conditions, of a table in all of its layouts."""
    table = relation.table.scanned
    is_delta = table.provider == DELTA
    own = (
        {name: name for name in table.partitioned_by} if is_delta else dict(table.partition_fields)
    )
    times = () if is_delta else (TIMESTAMP,)
    found = []
    for visible, column in relation.table.visible_pruning_columns:
        if column.name in own and (family(column.type) is not None or column.type in times):
            found.append(PartitionField(visible, column, own[column.name]))
        found += [
            PartitionField(visible, column, name, transform)
            for source, name, transform in table.partition_times
            if source == column.name and column.type in ("date", TIMESTAMP)
        ]
    return found


def _range(value: int, transform: str, type_: str) -> tuple[Union[int, date], Union[int, date]]:
    """The first and the last value of a column in a year, month, day or hour.

    Timestamps are microseconds. Early versions of Iceberg counted times before 1970 one too high.

    >>> _range(19_000, "day", "timestamp")[0], _range(1, "month", "date")
    (1641600000000000, (datetime.date(1970, 2, 1), datetime.date(1970, 2, 28)))
    """
    first = _start(value - (value <= 0), transform)
    end = _start(value + 1, transform)
    if type_ == TIMESTAMP:
        return (first - _EPOCH) // _MICROSECOND, (end - _EPOCH) // _MICROSECOND - 1
    return first.date(), (end - timedelta(days=1)).date()


def _start(value: int, transform: str) -> datetime:
    """The beginning of a year, month, day or hour that is counted since 1970."""
    if transform == "year":
        return datetime(1970 + value, 1, 1)
    if transform == "month":
        years, months = divmod(value, 12)
        return datetime(1970 + years, 1 + months, 1)
    return _EPOCH + timedelta(**{f"{transform}s": value})


def _is_literal(text: str, type_: str) -> bool:
    if type_ == TIMESTAMP:
        return True
    return typed(text, type_) is not None and not is_replaced(text)
