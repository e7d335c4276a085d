"""Sends the table that STREAMTABLE names last, so that the reducer streams it.

    >>> from airflow_hive_opt.hive.example import joins_after
    >>> sql = "SELECT /*+ STREAMTABLE(a) */ a.key FROM src a JOIN src1 b ON a.key = b.key"
    >>> joins_after(order_joins, sql)
    ['INNER 0 1, order 1 0']

The hinted input, or the intermediate result that contains it, changes places with the last input.

Source: Hive's JoinReorder.
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph.operator_graph import Join, MapJoin, OperatorGraph


def order_joins(graph: OperatorGraph) -> None:
    """Sets the order in which the inputs of a join are sent."""
    for join in graph.joins():
        if isinstance(join, MapJoin) or not join.stream_aliases:
            continue
        hinted = _hinted(join)
        if hinted is not None:
            order = list(range(len(join.aliases)))
            last = len(order) - 1
            order[hinted], order[last] = order[last], order[hinted]
            join.order = tuple(order)


def _hinted(join: Join) -> int | None:
    streamed = set(join.stream_aliases)
    for tag, aliases in enumerate(join.aliases):
        if streamed.intersection(aliases):
            return tag
    return None
