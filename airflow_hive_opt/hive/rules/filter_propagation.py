"""Copies a filter below a join to the join's other inputs, through equal keys.

Before::

    SELECT a.key FROM src a JOIN src1 b ON a.key = b.key AND a.key > '5'

After, the scan of b is filtered by ``b.key > '5'`` too:

    >>> from airflow_hive_opt.hive.example import filters_after
    >>> sql = "SELECT a.key FROM src a JOIN src1 b ON a.key = b.key AND a.key > '5'"
    >>> filters_after(propagate_filters, sql)
    ['a: key > '5'', 'b: key > '5'']

The two sides of an inner or semi join copy filters to each other. The preserved side of an outer
join copies its filters to the other side. A FULL OUTER JOIN copies none.

Source: Hive's PredicateTransitivePropagate.
"""

from __future__ import annotations

from airflow_hive_opt.hive.generate.names import is_deterministic
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Call, Column, Expression
from airflow_hive_opt.statement.zip_strict import zip_strict


def propagate_filters(graph: ops.OperatorGraph) -> None:
    """Inserts the copies as Filters directly below the ReduceSinks of their inputs."""
    if not graph.settings.is_on("hive.optimize.ppd"):
        return
    if not graph.settings.is_on("hive.ppd.recognizetransivity"):
        return
    for join in graph.joins():
        sinks = [parent for parent in join.parents if isinstance(parent, ops.ReduceSink)]
        added: list[list[Expression]] = [[] for _ in sinks]
        for source, targets in enumerate(propagation(join.conditions)):
            below = sinks[source].parents[0]
            if not isinstance(below, ops.Filter):
                continue
            for target in targets:
                copies = _copies(below, sinks[source], sinks[target])
                known = [*_conjuncts_below(sinks[target]), *added[target]]
                added[target] += [copy for copy in copies if copy not in known]
        for sink, conjuncts in zip_strict(sinks, added):
            if conjuncts:
                below = sink.parents[0]
                new = ops.Filter(list(below.columns), predicate=tuple(conjuncts))
                ops.insert_between(below, new, sink)


def _copies(
    filter_: ops.Filter, source: ops.ReduceSink, target: ops.ReduceSink
) -> list[Expression]:
    """Returns copies of a Filter's user conjuncts for another input.

    Returns an empty list unless every conjunct of the Filter can be copied.
    """
    copies: list[Expression] = []
    for conjunct in filter_.predicate:
        copy = replaced(conjunct, source.keys, target.keys)
        if copy is None:
            return []
        if conjunct not in filter_.generated:
            copies.append(copy)
    return copies


def propagation(conditions: tuple[ops.JoinCondition, ...]) -> list[list[int]]:
    """Returns, for every input of a join, the inputs to which its filters may be copied."""
    edges: list[set[int]] = [set() for _ in range(len(conditions) + 1)]
    for condition in conditions:
        if condition.kind in ("INNER", "LEFT SEMI", "LEFT OUTER"):
            edges[condition.left].add(condition.right)
        if condition.kind in ("INNER", "LEFT SEMI", "RIGHT OUTER"):
            edges[condition.right].add(condition.left)
    return [_reached(edges, start) for start in range(len(edges))]


def _reached(edges: list[set[int]], start: int) -> list[int]:
    seen, stack = {start}, [start]
    while stack:
        for target in sorted(edges[stack.pop()] - seen):
            seen.add(target)
            stack.append(target)
    return sorted(seen - {start})


def replaced(
    expression: Expression, source: tuple[Expression, ...], target: tuple[Expression, ...]
) -> Expression | None:
    """Replaces the source's keys with the target's; ``None`` if another column remains.

    Returns ``None`` for a nondeterministic expression, too.
    """
    if not is_deterministic(expression):
        return None
    for key, other in zip_strict(source, target):
        if expression == key:
            return other
    if isinstance(expression, Column):
        return None
    if isinstance(expression, Call):
        arguments = []
        for argument in expression.arguments:
            found = replaced(argument, source, target)
            if found is None:
                return None
            arguments.append(found)
        return Call(expression.name, tuple(arguments), expression.at, False, None, expression.note)
    return expression


def _conjuncts_below(sink: ops.ReduceSink) -> list[Expression]:
    """Returns the conjuncts of the Filters directly below a ReduceSink."""
    found: list[Expression] = []
    operator: ops.Operator = sink.parents[0]
    while isinstance(operator, ops.Filter):
        found += operator.predicate
        operator = operator.parents[0]
    return found
