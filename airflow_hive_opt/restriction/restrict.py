"""Restricts each pruned scan in a statement's text; the rest stays the user's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from airflow_hive_opt.documents.descriptor import Changes, RowFilter, Target
from airflow_hive_opt.documents.indexed_scans import HeldScan
from airflow_hive_opt.metastores.partitions import Value, are_usual, typed
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.restriction.list_condition import cheapest_way, list_condition
from airflow_hive_opt.restriction.row_changes import change_edits, values_condition
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.parse import Span
from airflow_hive_opt.statement.scan_ref import ScanRef


def restrict(
    sql: str,
    targets: Sequence[Target],
    ways: Mapping[ScanRef, Way],
    row_filters: Sequence[RowFilter] = (),
    changes: Changes | None = None,
    held: Sequence[HeldScan] = (),
) -> str:
    """``sql`` with ``table`` replaced by ``(SELECT * FROM table WHERE ...)`` for every target.

    An alias after the table's name stays. If there is none, the table's name becomes the alias.
    Conditions on the target of ``changes`` become part of the statement's own condition.
    The scans of ``held`` read their table at a snapshot. ``ways`` are those of :func:`ways_of`.
    """
    return spliced(sql, restrictions(sql, targets, ways, row_filters, changes, held))


def restrictions(
    sql: str,
    targets: Sequence[Target],
    ways: Mapping[ScanRef, Way],
    row_filters: Sequence[RowFilter] = (),
    changes: Changes | None = None,
    held: Sequence[HeldScan] = (),
) -> list[Edit]:
    """The edits that restrict the scans; raises ``ValueError`` if a scan is not at its position."""
    scans: dict[ScanRef, list[Target | RowFilter | HeldScan]] = {}
    for target in targets:
        scans.setdefault(target.scan, []).append(target)
    changed = []
    for row_filter in row_filters:
        if changes is not None and row_filter.scan.reference == changes.target:
            changed.append(row_filter)
        else:
            scans.setdefault(row_filter.scan, []).append(row_filter)
    for each in held:
        scans.setdefault(each.scan, []).append(each)
    edits = list(change_edits(changes, changed)) if changes is not None and changed else []
    for scan, restriction in scans.items():
        first = restriction[0]
        start, stop = scan.position
        if sql[start:stop] != first.text:
            raise ValueError(f"{first.text} is not at {start} of the statement")
        alias = "" if first.aliased else f" AS {quote(scan.alias)}"
        version = "".join(_version(found) for found in restriction if isinstance(found, HeldScan))
        inner = f"{first.text}{version} AS {quote(scan.alias)}"
        conditions = [
            _condition(found, ways) for found in restriction if not isinstance(found, HeldScan)
        ]
        where = f" WHERE {_all_of(conditions)}" if conditions else ""
        edits.append(Edit(Span(start, stop), f"(SELECT * FROM {inner}{where}){alias}"))
    return edits


def _version(held: HeldScan) -> str:
    return f" VERSION AS OF {int(held.snapshot)}"


def _all_of(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({c})" for c in conditions)


def _condition(found: Target | RowFilter, ways: Mapping[ScanRef, Way]) -> str:
    if isinstance(found, Target):
        return partition_condition(found, ways[found.scan])
    return values_condition(f"{quote(found.scan.alias)}.{quote(found.column)}", found)


def partition_condition(target: Target, way: Way) -> str:
    """A condition that holds in the target's partitions and perhaps in a few others.

    Spark finds the partitions by ``way``. The condition is always true if a value can't be read as
    its column's type: the statement itself then decides.
    """
    rows = pruned_rows(target)
    if rows is None:
        return "1 = 1"
    return list_condition(target.scan.alias, target.visible_columns, rows, way)


def is_exact(target: Target, way: Way) -> bool:
    """Whether :func:`partition_condition` holds in the target's partitions only."""
    return pruned_rows(target) is not None and (
        len(target.pruned_columns) == 1 or way is Way.FILTER
    )


def ways_of(targets: Iterable[Target], is_on_glue: bool) -> dict[ScanRef, Way]:
    """How Spark finds the partitions of each target at the least cost."""
    return {target.scan: way_of(target, is_on_glue) for target in targets}


def way_of(target: Target, is_on_glue: bool) -> Way:
    """How Spark finds the target's partitions at the least cost."""
    rows = pruned_rows(target)
    if rows is None:
        return Way.WHOLE
    usual = are_usual(target.partitions, target.types)
    return cheapest_way(target.visible_columns, rows, target.total, is_on_glue, usual)


def pruned_rows(target: Target) -> set[tuple[Value | None, ...]] | None:
    """The pruned columns' values, typed; ``None`` if one can't be read as its type."""
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
