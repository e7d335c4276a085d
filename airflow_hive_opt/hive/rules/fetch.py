"""Finds queries that need no job, because Hive's client reads the table itself.

    >>> from airflow_hive_opt.hive.example import stages
    >>> stages("SELECT * FROM src LIMIT 5")
    'Fetch'
    >>> stages("SELECT count(1) FROM src")
    'MapReduce, Fetch'

Source: Hive's SimpleFetchOptimizer (``hive.fetch.task.conversion``).
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Column, Constant
from airflow_hive_opt.hive.rules.automatic_map_join import bytes_of
from airflow_hive_opt.hive.rules.static_pruning import kept

_SIMPLE = (ops.TableScan, ops.Filter, ops.Select, ops.Limit, ops.FileSink)
_MORE = (*_SIMPLE, ops.LateralViewForward, ops.LateralViewJoin, ops.UserTableFunction)


def only_fetches(graph: ops.OperatorGraph) -> bool:
    """Tells whether a SELECT runs without a job."""
    conversion = graph.settings.values["hive.fetch.task.conversion"]
    if len(graph.scans) != 1 or len(graph.sinks) != 1:
        return False
    if conversion == "none":
        return _only_counts(graph)
    operators = graph.operators()
    (scan,) = graph.scans
    if scan.table is None:
        return all(isinstance(operator, _SIMPLE) for operator in operators)
    if _only_counts(graph) or _gives_nothing(graph):
        return True
    if conversion == "minimal":
        return not scan.sampled and all(_is_minimal(operator) for operator in operators)
    for operator in operators:
        on_map = isinstance(operator, ops.GroupBy) and operator.mode == "final"
        if not isinstance(operator, _MORE) and not on_map:
            return False
    kinds = set(map(type, operators))
    if ops.Limit in kinds and ops.Filter not in kinds:
        return True
    size = bytes_of(scan)
    threshold = graph.settings.number("hive.fetch.task.conversion.threshold")
    return threshold < 0 or size is None or size <= threshold


def _is_minimal(operator: ops.Operator) -> bool:
    """Tells whether ``minimal`` allows an operator: scan, Select of columns, LIMIT, sink.

    Conditions on partitions do not count: pruning has already removed them.
    """
    return isinstance(operator, (ops.TableScan, ops.Limit, ops.FileSink)) or (
        isinstance(operator, ops.Select)
        and all(
            isinstance(each, (Column, Constant)) for each in (operator.expressions or {}).values()
        )
    )


def _gives_nothing(graph: ops.OperatorGraph) -> bool:
    """Tells whether the query ends with LIMIT 0."""
    above = graph.sinks[0].parents[0]
    return isinstance(above, ops.Limit) and above.count == 0


def _only_counts(graph: ops.OperatorGraph) -> bool:
    """Tells whether the query is ``SELECT count(*)`` of a table with a known number of rows.

    Source: Hive's StatsOptimizer (``hive.compute.query.using.stats``).
    """
    if not graph.settings.is_on("hive.compute.query.using.stats"):
        return False
    (scan,) = graph.scans
    groups = [operator for operator in graph.operators() if isinstance(operator, ops.GroupBy)]
    allowed = (ops.TableScan, ops.Select, ops.GroupBy, ops.ReduceSink, ops.FileSink)
    if not groups or not all(isinstance(operator, allowed) for operator in graph.operators()):
        return False
    calls = [call for group in groups for call in group.aggregates]
    arguments = [each for call in calls for each in call.arguments]
    if not all(isinstance(each, Constant) for each in arguments):
        return False
    if any(call.name != "count" or call.distinct for call in calls):
        return False
    if scan.table is None or scan.sampled or any(group.keys for group in groups):
        return False
    if scan.table.partition_columns:
        partitions = kept(scan)
        return partitions is not None and all(each.rows is not None for each in partitions)
    return scan.table.rows is not None
