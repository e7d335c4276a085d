"""Prunes partitions by the statement's own conditions and removes those conditions.

Before, ``WHERE ds = '2008-04-08' AND key > '5'`` is a filter. After, the scan reads only the
partitions of that day, and the filter has only ``key > '5'``:

    >>> from airflow_hive_opt.hive.example import filters_after
    >>> filters_after(prune_static, "SELECT * FROM srcpart WHERE ds = '2008-04-08' AND key > '5'")
    ['srcpart: key > '5'']

Source: Hive's PartitionPruner and PartitionConditionRemover.
"""

from __future__ import annotations

from airflow_hive_opt.hive.generate.names import is_deterministic
from airflow_hive_opt.hive.graph.backtracking import columns_of, substitute
from airflow_hive_opt.hive.graph.operator_graph import Filter, OperatorGraph, TableScan, remove
from airflow_hive_opt.hive.parser.syntax import Call, Constant, Expression, joined
from airflow_hive_opt.hive.rules.constant_folding import folded
from airflow_hive_opt.hive.rules.constants import FALSE, TRUE
from airflow_hive_opt.statement.catalog import Partition, Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.zip_strict import zip_strict


def prune_static(graph: OperatorGraph) -> None:
    """Sets the partitions of every scan.

    Raises :class:`PlanError` if a scan has no condition on a partition column in strict mode.
    """
    on = graph.settings.is_on("hive.optimize.ppd")
    for scan in graph.scans:
        if scan.table is None or not scan.table.partition_columns:
            continue
        filters = [child for child in scan.children if isinstance(child, Filter)]
        if on and len(scan.children) > 1 and len(filters) == len(scan.children):
            _choose_for_several(scan, scan.table, filters, graph)
            continue
        if not on or len(scan.children) != 1:
            filters = []
        conjuncts = [part for found in filters for part in found.predicate if _on_partition(part)]
        if not conjuncts:
            _check_strict(scan, graph)
        else:
            _choose(scan, scan.table, filters[0], conjuncts)


def _check_strict(scan: TableScan, graph: OperatorGraph) -> None:
    if graph.settings.forbids("hive.strict.checks.large.query"):
        raise PlanError(
            "SEMANTIC",
            f"{scan.alias} is read without a condition on a partition column, which strict "
            "mode forbids",
            number=40000,
        )


def _choose_for_several(
    scan: TableScan, table: Table, filters: list[Filter], graph: OperatorGraph
) -> None:
    """Keeps the partitions that at least one of several inserts reads from the scan."""
    wanted = [[part for part in each.predicate if _on_partition(part)] for each in filters]
    if not all(wanted):
        _check_strict(scan, graph)
    elif table.partitions is not None:
        scan.partitions = tuple(
            "/".join(partition.values)
            for partition in table.partitions
            if any(
                False not in [_truth(part, table, partition) for part in conjuncts]
                for conjuncts in wanted
            )
        )


def kept(scan: TableScan) -> tuple[Partition, ...] | None:
    """Returns the partitions that a scan reads, or ``None`` if the catalog does not know them."""
    if scan.table is None or scan.table.partitions is None:
        return None
    if scan.partitions is None:
        return scan.table.partitions
    wanted = set(scan.partitions)
    return tuple(each for each in scan.table.partitions if "/".join(each.values) in wanted)


def _on_partition(expression: Expression) -> bool:
    columns = columns_of(expression)
    return (
        bool(columns)
        and all(column.partition and "__" not in column.name for column in columns)
        and is_deterministic(expression)
    )


def _choose(scan: TableScan, table: Table, filter_: Filter, conjuncts: list[Expression]) -> None:
    decided = set(conjuncts)
    if table.partitions is not None:
        chosen = []
        for partition in table.partitions:
            values = [_truth(part, table, partition) for part in conjuncts]
            if False not in values:
                chosen.append("/".join(partition.values))
                decided -= {part for part, value in zip_strict(conjuncts, values) if value is None}
        scan.partitions = tuple(chosen)
        if not chosen:
            return
    filter_.predicate = tuple(part for part in filter_.predicate if part not in decided)
    if not filter_.predicate:
        remove(filter_)


def _truth(expression: Expression, table: Table, partition: Partition) -> bool | None:
    """Tells whether a condition holds for a partition; ``None`` if that is unknown."""
    columns: dict[str, Expression | None] = {
        column.name: Constant(f"'{value}'", "string")
        for column, value in zip(table.partition_columns, partition.values)
    }
    given = substitute(expression, columns)
    return None if given is None else _evaluated(given)


def _evaluated(expression: Expression) -> bool | None:
    if isinstance(expression, Call):
        inner = [_evaluated(part) for part in expression.arguments if expression.name in _LOGIC]
        if expression.name == "not":
            return None if inner[0] is None else not inner[0]
        if expression.name == "and":
            return False if False in inner else None if None in inner else True
        if expression.name == "or":
            return True if True in inner else None if None in inner else False
        if expression.name == "in":
            first, *others = expression.arguments
            equal = (Call("=", (first, other)) for other in others)
            return _evaluated(joined("or", [FALSE, *equal]))
        if expression.name == "between":
            value, low, high = expression.arguments
            both = (Call(">=", (value, low)), Call("<=", (value, high)))
            return _evaluated(Call("and", both))
    left = folded((expression,))
    if left == (FALSE,):
        return False
    return True if not left or left == (TRUE,) else None


_LOGIC = ("and", "or", "not")
