"""A query that needs no job: Hive's client reads the table itself.

    >>> from airflow_hive_opt.planner.rules.example import stages
    >>> stages("SELECT * FROM src LIMIT 5")
    'Fetch'
    >>> stages("SELECT count(1) FROM src")
    'MapReduce, Fetch'

Source: Hive's SimpleFetchOptimizer (``hive.fetch.task.conversion``).
"""

from __future__ import annotations

from airflow_hive_opt.planner.hive.operators import (
    FileSink,
    Filter,
    GroupBy,
    LateralViewForward,
    LateralViewJoin,
    Limit,
    Operator,
    OperatorGraph,
    Select,
    TableScan,
    UserTableFunction,
)
from airflow_hive_opt.planner.rules.automatic_map_join import bytes_of

_SIMPLE = (TableScan, Filter, Select, Limit, FileSink)
_MORE = (*_SIMPLE, LateralViewForward, LateralViewJoin, UserTableFunction)


def only_fetches(graph: OperatorGraph) -> bool:
    """Whether a SELECT runs without a job."""
    conversion = graph.settings.values["hive.fetch.task.conversion"]
    if conversion == "none" or len(graph.scans) != 1 or len(graph.sinks) != 1:
        return False
    operators = graph.operators()
    (scan,) = graph.scans
    if scan.table is None:
        return all(isinstance(operator, _SIMPLE) for operator in operators)
    limited = any(isinstance(operator, Limit) for operator in operators)
    if conversion == "minimal":
        return not scan.sampled and all(_is_minimal(operator) for operator in operators)
    for operator in operators:
        on_map = isinstance(operator, GroupBy) and operator.mode == "final"
        if not isinstance(operator, _MORE) and not on_map:
            return False
    filtered = any(isinstance(operator, Filter) for operator in operators)
    if limited and not filtered:
        return True
    size = bytes_of(scan)
    threshold = graph.settings.number("hive.fetch.task.conversion.threshold")
    return threshold < 0 or size is None or size <= threshold


def _is_minimal(operator: Operator) -> bool:
    """SELECT *, conditions on partitions (they are gone by now) and LIMIT."""
    return isinstance(operator, TableScan | Limit | FileSink) or (
        isinstance(operator, Select) and operator.star
    )
