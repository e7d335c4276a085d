"""The statement with each pruned scan narrowed to its partitions; the rest is the user's text."""

from __future__ import annotations

from airflow_hive_opt.planner.identifiers import quote
from airflow_hive_opt.runtime.descriptor import Target
from airflow_hive_opt.runtime.partitions import Value, typed
from airflow_hive_opt.spark.scan import Way, list_condition, way


def restrict(sql: str, targets: tuple[Target, ...]) -> str:
    """``sql`` with ``table`` replaced by ``(SELECT * FROM table WHERE ...)`` for every target.

    An alias that stands behind the reference stays; where there is none the table's name becomes
    it.
    """
    for target in sorted(targets, key=lambda found: found.reference, reverse=True):
        start, stop = target.reference
        if sql[start:stop] != target.text:
            raise ValueError(f"{target.text} is not at {start} of the statement")
        alias = "" if target.aliased else f" AS {quote(target.alias)}"
        inner = f"{target.text} AS {quote(target.alias)}"
        narrowed = f"(SELECT * FROM {inner} WHERE {partition_condition(target)}){alias}"
        sql = sql[:start] + narrowed + sql[stop:]
    return sql


def partition_condition(target: Target) -> str:
    """A condition that holds in the target's partitions and, if need be, in few others.

    Values that can't be read as their column's type are not compared: the statement itself
    decides there.
    """
    rows = _rows(target)
    if rows is None:
        return "1 = 1"
    return list_condition(target.alias, target.visible_columns, rows, target.total)


def scan_way(target: Target) -> Way:
    """How Spark will find the target's partitions."""
    rows = _rows(target)
    return Way.WHOLE if rows is None else way(rows, target.total)


def _rows(target: Target) -> set[tuple[Value | None, ...]] | None:
    """The pruned columns' values, typed; ``None`` where one can't be read."""
    at = [target.columns.index(name) for name in target.pruned_columns]
    rows: set[tuple[Value | None, ...]] = set()
    for partition in target.partitions:
        values = []
        for position in at:
            text = partition.values[position]
            value = None if text is None else typed(text, target.types[position])
            if value is None and text is not None:
                return None
            values.append(value)
        rows.add(tuple(values))
    return rows
