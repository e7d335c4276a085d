"""Conditions on columns of a table from the partition values of its data files.

A field of the partitions has the column's own values, or counts its years, months, days or hours
since 1970. These become ranges of the column. The fields count in UTC, whatever the session's time
zone is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, datetime, timedelta
from typing import Optional, Union

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.metastores.partitions import typed
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format
from airflow_hive_opt.spark.catalog.lakes.indexed_format import OWN_VALUES, PartitionField
from airflow_hive_opt.spark.local_task.row_filters import row_filter_on
from airflow_hive_opt.spark.local_task.value_lists import is_replaced, joined
from airflow_hive_opt.statement.types import TIMESTAMP

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def partition_fields(relation: TableRelation) -> list[tuple[str, PartitionField]]:
    """The fields whose values can become conditions, each with the visible name of its column."""
    table = relation.table.scanned
    fields = indexed_format(table.provider).partition_fields(table)
    return [
        (visible, field)
        for visible, column in relation.table.visible_pruning_columns
        for field in fields
        if field.column.name == column.name
    ]


def partition_filter(
    relation: TableRelation,
    visible: str,
    field: PartitionField,
    values: Collection[Optional[str]],
    most: int,
    source: SourceKeys,
) -> Optional[RowFilter]:
    """The condition that the column has one of the values; ``None`` if it can't be one.

    ``visible`` is the column's name in ``relation``. ``most`` is how many values a list may have.
    """
    type_, transform = field.column.type, field.transform
    listed = sorted(value for value in values if value is not None)
    found: list[object] = []
    if transform != OWN_VALUES:
        try:
            ranges = [_range(int(each), transform, type_) for each in listed]
        except (ValueError, OverflowError):  # beyond the years of Python
            return None
        found = [end for both in joined(sorted(ranges)) for end in both] if ranges else []
    elif len(listed) <= most and all(_is_literal(each, type_) for each in listed):
        found = [*listed]
    else:
        return None
    return row_filter_on(
        relation,
        visible,
        type_,
        found,
        is_range=transform != OWN_VALUES and bool(found),
        source=source,
        or_null=None in values,
    )


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
