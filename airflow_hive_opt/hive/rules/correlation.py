"""Merges the jobs of joins and group-bys on the same keys (the Correlation Optimizer).

    >>> from airflow_hive_opt.hive.example import stages
    >>> on = {"hive.optimize.correlation": "true", "hive.auto.convert.join": "false"}
    >>> sql = "SELECT x.key, count(1) FROM src x JOIN src1 y ON x.key = y.key GROUP BY x.key"
    >>> stages(sql, **on)
    'MapReduce, Fetch'

The rule traces the keys of a top ReduceSink downwards. A ReduceSink below is correlated if it has
the same keys, the same order and no conflicting number of reducers. If it feeds a join, the other
inputs of the join must be correlated too, as far as the join's type lets keys pass. The lowest
ReduceSinks stay and feed a Demux. The others become Mux operators in the reducer.

Source: Hive's CorrelationOptimizer (HIVE-2206); the steps follow its design page.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.graph.backtracking import through
from airflow_hive_opt.hive.parser.syntax import Column, Expression
from airflow_hive_opt.hive.rules.automatic_map_join import bytes_of
from airflow_hive_opt.hive.rules.filter_propagation import propagation
from airflow_hive_opt.hive.rules.hinted_map_join import big_table_candidates
from airflow_hive_opt.statement.settings import SMALL_TABLE_FILESIZE


def correlate(graph: ops.OperatorGraph) -> None:
    """Finds correlated ReduceSinks, starting with the last of the graph, and merges their jobs."""
    settings = graph.settings
    if settings.values["hive.optimize.correlation"] == "false":
        return
    if settings.is_on("hive.groupby.skewindata") or len(graph.sinks) > 1:
        return
    skipped: set[int] = set()
    if settings.is_on("hive.auto.convert.join"):
        limit = settings.number(SMALL_TABLE_FILESIZE)
        skipped = {id(join) for join in graph.joins() if _may_become_map_join(join, limit)}
    walked: set[int] = set()
    found: list[_Correlation] = []
    for operator in reversed(ops.topological(graph.scans)):
        if isinstance(operator, ops.ReduceSink) and id(operator) not in walked:
            correlation = _detect(operator, walked, skipped)
            if correlation is not None:
                found.append(correlation)
    for correlation in found:
        correlation.apply()
        graph.correlated = True


def _may_become_map_join(join: ops.Join, limit: int) -> bool:
    """Tells whether CommonJoinResolver may convert the join. The rule skips such a join."""
    sizes = []
    for parent in join.parents:
        size = _input_size(parent)
        if size is None:
            return False
        sizes.append(size)
    candidates = big_table_candidates(join.conditions)
    return any(not (sizes[tag] > 0 and sum(sizes) - sizes[tag] > limit) for tag in candidates)


def _input_size(sink: ops.Operator) -> int | None:
    """Returns the bytes of the scans below a ReduceSink, up to other shuffles; ``None`` if none."""
    total: int | None = None
    stack = list(sink.parents)
    while stack:
        operator = stack.pop()
        if isinstance(operator, ops.TableScan):
            total = (total or 0) + (bytes_of(operator) or 0)
        if not isinstance(operator, ops.ReduceSink):
            stack.extend(operator.parents)
    return total


@dataclass(frozen=True)
class _Correlation:
    """The lowest and all ReduceSinks of one merged job."""

    bottom: list[ops.ReduceSink]
    all: list[ops.ReduceSink]

    def apply(self) -> None:
        """Connects the bottom ReduceSinks to a Demux and turns all others into Mux operators."""
        demux = ops.Demux([])
        for sink in self.bottom:
            ops.insert_between(sink, mux := ops.Mux(list(sink.columns)), sink.children[0])
            mux.parents, sink.children = [demux], [demux]
            demux.children.append(mux)
            demux.parents.append(sink)
        for sink in self.all:
            if sink in self.bottom:
                continue
            below, above = sink.parents[0], sink.children[0]
            partial = isinstance(below, ops.GroupBy) and below.mode == "hash"
            if isinstance(above, ops.GroupBy) and partial:
                above.mode, above.expressions = "complete", below.expressions
                ops.remove(below)
            ops.take_place(ops.Mux(list(sink.columns)), sink)


def _detect(sink: ops.ReduceSink, walked: set[int], skipped: set[int]) -> _Correlation | None:
    child = sink.children[0] if len(sink.children) == 1 else None
    if not isinstance(child, (ops.Join, ops.GroupBy)) or id(child) in skipped:
        return None
    top = [parent for parent in child.parents if isinstance(parent, ops.ReduceSink)]
    members: list[ops.ReduceSink] = []
    bottom = [found for each in top for found in _explore(each, members, walked, skipped)]
    return None if set(bottom) <= set(top) else _Correlation(list(dict.fromkeys(bottom)), members)


def _explore(
    sink: ops.ReduceSink, members: list[ops.ReduceSink], walked: set[int], skipped: set[int]
) -> list[ops.ReduceSink]:
    """Returns the lowest correlated ReduceSinks below this one (exploitJobFlowCorrelation)."""
    walked.add(id(sink))
    members.append(sink)
    keys = [*sink.keys, *sink.partition_keys]
    if not sink.keys or not all(isinstance(key, Column) for key in keys):
        return [sink]
    below = _correlated(sink, list(sink.keys), list(sink.partition_keys), sink.parents[0], skipped)
    if not below:
        return [sink]
    return [found for each in below for found in _explore(each, members, walked, skipped)]


def _correlated(
    top: ops.ReduceSink,
    keys: list[Expression],
    partition: list[Expression],
    current: ops.Operator,
    skipped: set[int],
) -> list[ops.ReduceSink]:
    """Returns correlated ReduceSinks that feed ``current``. The keys are over its output."""
    if len(current.children) != 1:
        return []
    if isinstance(current, (ops.ReduceSink, ops.TableFunction, ops.Script, ops.UserTableFunction)):
        return []
    if isinstance(current, ops.Union):
        found: list[ops.ReduceSink] = []
        for parent in current.parents:
            part = _correlated(top, keys, partition, parent, skipped)
            if not part:
                return []
            found += part
        return found
    inner = [through(key, current) for key in keys]
    inner_partition = [through(key, current) for key in partition]
    if not all(isinstance(key, Column) for key in [*inner, *inner_partition]):
        return []
    columns = [key for key in inner if key is not None]
    parts = [key for key in inner_partition if key is not None]
    if isinstance(current, ops.Join):
        if isinstance(current, ops.MapJoin) or id(current) in skipped:
            return []
        return _through_join(top, current, keys, columns, parts)
    if len(current.parents) != 1:
        return []
    parent = current.parents[0]
    if isinstance(parent, ops.ReduceSink):
        return [parent] if _same(top, parent, columns, parts) else []
    return _correlated(top, columns, parts, parent, skipped)


def _through_join(
    top: ops.ReduceSink,
    join: ops.Join,
    keys: list[Expression],
    inner: list[Expression],
    partition: list[Expression],
) -> list[ops.ReduceSink]:
    """Returns the inputs of a join if each key is a key of its input at the same position."""
    tags = [join.sources[key.name] for key in keys if isinstance(key, Column)]
    parents = [join.parents[tag] for tag in tags]
    sinks = [parent for parent in parents if isinstance(parent, ops.ReduceSink)]
    if len(sinks) < len(inner) or len(partition) != len(inner):
        return []
    for at, sink in enumerate(sinks):
        if len(sink.keys) != len(inner) or sink.keys[at] != inner[at]:
            return []
        if not _same(top, sink, list(sink.keys), list(sink.partition_keys)):
            return []
    return _all_inputs(join, set(tags))


def _all_inputs(join: ops.Join, reached: set[int]) -> list[ops.ReduceSink]:
    """Returns all inputs of a join, if the join's types lead from ``reached`` to every input.

    Returns an empty list otherwise.
    """
    targets = propagation(join.conditions)
    reached = reached.union(*(targets[tag] for tag in reached))
    if len(reached) != len(join.parents):
        return []
    return [parent for parent in join.parents if isinstance(parent, ops.ReduceSink)]


def _same(
    top: ops.ReduceSink, sink: ops.ReduceSink, keys: list[Expression], partition: list[Expression]
) -> bool:
    return (
        list(sink.keys) == keys
        and list(sink.partition_keys) == partition
        and sink.order == top.order
        and (top.reducers < 0 or sink.reducers < 0 or top.reducers == sink.reducers)
    )
