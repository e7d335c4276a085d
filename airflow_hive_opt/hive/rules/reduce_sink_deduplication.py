"""Removes a shuffle whose rows are already shuffled by the same keys.

    >>> from airflow_hive_opt.hive.example import stages
    >>> inner = "SELECT key, count(1) c FROM src GROUP BY key"
    >>> stages(f"SELECT key, sum(c) FROM ({inner}) t GROUP BY key")
    'MapReduce, Fetch'

The keys of one ReduceSink must begin with the keys of the other, in the same order, and the
numbers of reducers must agree. The remaining shuffle takes over a fixed number of reducers, such
as the single one of ORDER BY, only if the number is at least
``hive.optimize.reducededuplication.min.reducer``.

Source: Hive's ReduceSinkDeDuplication.
"""

from __future__ import annotations

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import backtrack
from airflow_hive_opt.hive.parser.syntax import Constant, Expression


def deduplicate(graph: ops.OperatorGraph) -> None:
    """Removes ReduceSinks, starting with the last of the graph."""
    settings = graph.settings
    if not settings.is_on("hive.optimize.reducededuplication"):
        return
    least = settings.number("hive.optimize.reducededuplication.min.reducer")
    joins_too = not settings.is_on("hive.auto.convert.join") and not settings.is_on(
        "hive.auto.convert.join.noconditionaltask"
    )
    for operator in reversed(ops.topological(graph.scans)):
        if (
            isinstance(operator, ops.ReduceSink)
            and len(operator.children) == 1
            and operator.parents
        ):
            _deduplicate(operator, least, joins_too)


def _deduplicate(sink: ops.ReduceSink, least: int, joins_too: bool) -> None:
    child, below = sink.children[0], sink.parents[0]
    partial: ops.GroupBy | None = None
    if isinstance(child, ops.GroupBy):
        if child.grouping_sets:
            return
        if isinstance(below, ops.GroupBy) and below.mode == "hash" and len(below.children) == 1:
            partial = below
    elif not isinstance(child, ops.Select):
        return
    if not _merge_upwards(sink, partial or sink, least, joins_too):
        return
    if partial is not None and isinstance(child, ops.GroupBy):
        computed, count = partial.expressions or {}, len(child.columns) - len(child.aggregates)
        child.mode, child.keys = "complete", partial.keys[:count]
        child.expressions = {
            info.internal: computed.get(source.internal)
            for info, source in zip(child.columns, partial.columns)
        } | {info.internal: None for info in child.columns[count:]}
        ops.remove(partial)
    ops.remove(sink)


def _merge_upwards(sink: ops.ReduceSink, start: ops.Operator, least: int, joins_too: bool) -> bool:
    above = _nearest(start)
    if isinstance(above, ops.ReduceSink):
        return _merge(sink, above, least)
    if isinstance(above, ops.GroupBy):
        parent = _nearest(above)
        return isinstance(parent, ops.ReduceSink) and _merge(sink, parent, least)
    if isinstance(above, ops.Join) and not isinstance(above, ops.MapJoin) and joins_too:
        return _merge_with_join(sink, above, least)
    return False


def _nearest(start: ops.Operator) -> ops.Operator | None:
    """Returns the next ReduceSink, GroupBy or Join towards the scans, past Selects and Filters.

    If ``start`` is a ReduceSink, the search goes past window functions, too.
    """
    passed: tuple[type[ops.Operator], ...] = (ops.Select, ops.Filter)
    if isinstance(start, ops.ReduceSink):
        passed += (ops.TableFunction,)
    current = start
    while len(current.parents) == 1:
        current = current.parents[0]
        if isinstance(current, (ops.ReduceSink, ops.GroupBy, ops.Join)):
            return current
        if not isinstance(current, passed):
            return None
    return None


def _merge(child: ops.ReduceSink, parent: ops.ReduceSink, least: int) -> bool:
    """Lets ``parent`` shuffle for ``child``, too; returns whether it can."""
    shared = min(len(child.order), len(parent.order))
    if child.order[:shared] != parent.order[:shared] or not _reducers_agree(child, parent, least):
        return False
    keys = _at_parent(child.keys, parent.keys, child, parent)
    partition = _at_parent(child.partition_keys, parent.partition_keys, child, parent)
    if keys is None or partition is None or any(isinstance(key, Constant) for key in parent.keys):
        return False
    if len(keys) > len(parent.keys):
        parent.keys, parent.order = keys, child.order
    if partition and (len(partition) < len(parent.partition_keys) or not parent.partition_keys):
        parent.partition_keys = partition
    if parent.reducers < 0:
        parent.reducers = child.reducers
    return True


def _merge_with_join(child: ops.ReduceSink, join: ops.Join, least: int) -> bool:
    """Lets the ReduceSinks below a join replace ``child``; returns whether they can.

    Each key of ``child`` must be the key, at the same position, of an input whose keys the join
    does not set to NULL.
    """
    sinks = [parent for parent in join.parents if isinstance(parent, ops.ReduceSink)]
    if len(sinks) != len(join.parents) or not child.keys:
        return False
    if len(child.keys) > len(sinks[0].keys):
        return False
    if len(child.partition_keys) != len(sinks[0].partition_keys):
        return False
    if child.order != sinks[0].order[: len(child.order)]:
        return False
    if not _reducers_agree(child, sinks[0], least):
        return False
    kept = [sink for tag, sink in enumerate(sinks) if _keeps_order(join, tag)]
    for own, shuffled in (
        (child.keys, [(sink, sink.keys) for sink in kept]),
        (child.partition_keys, [(sink, sink.partition_keys) for sink in kept]),
    ):
        for at, key in enumerate(own):
            if not any(backtrack(key, child, sink) == keys[at] for sink, keys in shuffled):
                return False
    if sinks[0].reducers < 0:
        for sink in sinks:
            sink.reducers = child.reducers
    return True


def _keeps_order(join: ops.Join, tag: int) -> bool:
    """Tells whether a join passes on the keys of an input unchanged, never as NULL."""
    return not any(
        (condition.kind == "LEFT OUTER" and condition.right == tag)
        or (condition.kind == "RIGHT OUTER" and condition.left == tag)
        or (condition.kind == "FULL OUTER" and tag in (condition.left, condition.right))
        for condition in join.conditions
    )


def _reducers_agree(child: ops.ReduceSink, parent: ops.ReduceSink, least: int) -> bool:
    if child.reducers < 0:
        return True
    return child.reducers >= least if parent.reducers < 0 else child.reducers == parent.reducers


def _at_parent(
    child_keys: tuple[Expression, ...],
    parent_keys: tuple[Expression, ...],
    child: ops.ReduceSink,
    parent: ops.ReduceSink,
) -> tuple[Expression, ...] | None:
    """Returns the child's keys over the parent's output; ``None`` if the parent has other keys."""
    below = [backtrack(key, child, parent) for key in child_keys]
    if None in below or any(own != other for own, other in zip(below, parent_keys)):
        return None
    return tuple(key for key in below if key is not None)
