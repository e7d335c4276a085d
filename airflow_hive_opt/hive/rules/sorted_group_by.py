"""Runs a group-by in the mapper if the table is bucketed and sorted by the group-by's columns.

``SELECT key, count(1) FROM b4 GROUP BY key`` on ``b4 CLUSTERED BY (key) SORTED BY (key)`` needs no
reducer: every bucket holds whole groups, in order.

    >>> from airflow_hive_opt.hive.example import tree_after
    >>> print(tree_after(group_sorted, "SELECT key, count(1) FROM b4 GROUP BY key"))
    TS b4
      SEL
        GBY final key
          SEL
            FS

Source: Hive's GroupByOptimizer (``hive.map.groupby.sorted``).
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import backtrack
from airflow_hive_opt.hive.parser.syntax import Column
from airflow_hive_opt.hive.rules.static_pruning import kept


def group_sorted(graph: ops.OperatorGraph) -> None:
    """Removes the ReduceSink and the second GroupBy if the first GroupBy is enough."""
    settings = graph.settings
    if not settings.is_on("hive.map.groupby.sorted") or settings.is_on("hive.groupby.skewindata"):
        return
    for operator in graph.operators():
        if not isinstance(operator, ops.GroupBy) or operator.mode != "hash" or not operator.keys:
            continue
        if not operator.children or not isinstance(operator.children[0], ops.ReduceSink):
            continue
        sink = operator.children[0]
        if len(operator.children) > 1 or not isinstance(sink.children[0], ops.GroupBy):
            continue
        scan = _scan_below(operator)
        if scan is None or sink.distinct or operator.grouping_sets:
            continue
        if _is_sorted_by(scan, operator):
            above = sink.children[0]
            operator.mode = "final"
            ops.remove(sink)
            ops.remove(above)


def _scan_below(operator: ops.Operator) -> ops.TableScan | None:
    while len(operator.parents) == 1 and len(operator.parents[0].children) == 1:
        operator = operator.parents[0]
        if isinstance(operator, ops.TableScan):
            return operator
        if not isinstance(operator, (ops.Select, ops.Filter)):
            return None
    return None


def _is_sorted_by(scan: ops.TableScan, group: ops.GroupBy) -> bool:
    buckets = scan.table.buckets if scan.table else None
    if buckets is None or not buckets.sort:
        return False
    names = []
    for key in group.keys:
        found = backtrack(key, group, scan)
        if not isinstance(found, Column):
            return False
        names.append(found.name)
    if scan.table is not None and scan.table.partition_columns:
        partitions = kept(scan)
        if partitions is None or len(partitions) != 1:
            return False
    sort = [name for name, _ in buckets.sort]
    # The keys must be the first sort columns, in any order, and include all bucket columns.
    return (
        set(sort[: len(names)]) == set(names)
        and set(buckets.columns) == set(sort[: len(buckets.columns)])
        and set(buckets.columns) <= set(names)
    )
