"""Conditions in Iceberg's JSON, and the files that they leave, by Iceberg's own planning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_hive_opt.documents.descriptor import PlannedFiles, RowFilter
from airflow_hive_opt.spark.session.java_classes import java_class
from airflow_hive_opt.statement.types import INTEGER_BITS, TIMESTAMP

_LISTS = "org.apache.iceberg.relocated.com.google.common.collect.Lists"
_NOT_SPLIT = 1 << 62  # bytes


def expression_of(filters: Sequence[tuple[str, RowFilter]]) -> str:
    """Conditions on columns of one table in Iceberg's JSON; each pair begins with a column's name.

    >>> from airflow_hive_opt.documents.descriptor import SourceKeys
    >>> from airflow_hive_opt.statement.scan_ref import ScanRef
    >>> keys = SourceKeys(("c",), "c", "", 1)
    >>> scan, days = ScanRef("t", "l.t", (0, 3), "t"), ("2026-01-05",)
    >>> days = RowFilter(scan, "l.t", False, "d", "date", days, False, keys)
    >>> expression_of([("day", days)])
    '{"type": "in", "term": "day", "values": ["2026-01-05"]}'
    """
    conditions = [_condition(column, found) for column, found in filters]
    return json.dumps(_combined("and", conditions))


def _condition(column: str, found: RowFilter) -> object:
    condition = _has_value(column, found)
    if not found.or_null:
        return condition
    null = {"type": "is-null", "term": column}
    return null if condition is False else _combined("or", [null, condition])


def _has_value(column: str, found: RowFilter) -> object:
    whole = found.type in INTEGER_BITS or found.type == TIMESTAMP
    values = [int(text) if whole else text for text in found.values]
    if not values:
        return False
    if not found.is_range:
        return {"type": "in", "term": column, "values": values}
    ranges = [
        _combined(
            "and",
            [
                {"type": "gt-eq", "term": column, "value": low},
                {"type": "lt-eq", "term": column, "value": high},
            ],
        )
        for low, high in zip(values[::2], values[1::2])
    ]
    return _combined("or", ranges)


def _combined(operator: str, conditions: Sequence[object]) -> object:
    """The conditions as a balanced tree: Iceberg reads it recursively."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    left, right = conditions[:half], conditions[half:]
    return {
        "type": operator,
        "left": _combined(operator, left),
        "right": _combined(operator, right),
    }


def planned_files(jvm: Any, table: Any, found: PlannedFiles) -> PlannedFiles | None:
    """``found`` with the numbers that Iceberg's table, an object of the JVM, has now."""
    if found.expression is None:
        return None
    if (snapshot := table.currentSnapshot()) is None:
        return replace(found, partitions=0, files=0, bytes=0, total_files=0, total_bytes=0)
    parser = java_class(jvm, "org.apache.iceberg.expressions.ExpressionParser")
    condition = parser.fromJson(found.expression)
    scan = table.newScan().caseSensitive(False).filter(condition)
    planned = scan.planFiles()
    try:
        tasks = java_class(jvm, _LISTS).newArrayList(planned)
    finally:
        planned.close()
    partitions = None
    if table.specs().size() == 1:  # it can't group files of a table whose partitioning has changed
        util = java_class(jvm, "org.apache.iceberg.util.TableScanUtil")
        by_partition = table.spec().partitionType()
        partitions = int(util.planTaskGroups(tasks, _NOT_SPLIT, 1, 0, by_partition).size())
    # The sizes of whole files: planTaskGroups splits files at their split offsets, and leaves out
    # what precedes the first one.
    whole = java_class(jvm, "org.apache.iceberg.BaseScanTaskGroup")(tasks)
    summary = snapshot.summary()
    return replace(
        found,
        partitions=partitions,
        files=int(tasks.size()),
        bytes=int(whole.sizeBytes()),
        total_files=_number(summary.get("total-data-files")),
        total_bytes=_number(summary.get("total-files-size")),
    )


def _number(text: Any) -> int | None:
    return None if text is None else int(text)
