"""The clauses after FROM: WHERE, group-by, windows, SELECT, order, limit, sink."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate import aggregate, sinks
from airflow_hive_opt.hive.generate.generation import Generation, filtered
from airflow_hive_opt.hive.generate.names import (
    Scope,
    aggregates_in,
    error,
    windows_in,
)
from airflow_hive_opt.hive.generate.select_list import select, windows, written
from airflow_hive_opt.hive.generate.subquery_joins import subquery_predicates
from airflow_hive_opt.hive.generate.where import where
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax


def generate(
    generation: Generation,
    block: syntax.Block,
    operator: ops.Operator,
    sources: dict[str, ops.Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> ops.Operator:
    """Makes all bodies of a block over its FROM and returns the last operator of the last body."""
    found = operator
    for group in _body_groups(generation, block.bodies):
        if len(group) > 1:
            found = _shared_group_by(generation, group, operator, sources, path, sink, nested)
            continue
        (body,) = group
        below, scope = _filtered(generation, body, operator, sources, path, nested), None
        if aggregate.is_grouped(body) and not _distinct_over_windows(body):
            below, scope = aggregate.generate(generation.sql, generation.settings, body, below)
        found = _after_group_by(generation, body, below, scope, sources, path, sink, nested)
    return found


def _body_groups(
    generation: Generation, bodies: tuple[syntax.Body, ...]
) -> list[list[syntax.Body]]:
    """Groups the bodies of a multi-insert that share a reducer: same keys, same DISTINCT."""
    groups: list[list[syntax.Body]] = []
    for body in bodies:
        for group in groups if len(bodies) > 1 else ():
            if _share_reducer(generation, group[0], body):
                group.append(body)
                break
        else:
            groups.append([body])
    return groups


def _share_reducer(generation: Generation, first: syntax.Body, second: syntax.Body) -> bool:
    settings = generation.settings
    if not settings.is_on("hive.multigroupby.singlereducer"):
        return False
    if settings.is_on("hive.groupby.skewindata"):
        return False
    if not (first.group_by and first.group_by == second.group_by):
        return False
    return _distinct_arguments(first) == _distinct_arguments(second)


def _distinct_arguments(body: syntax.Body) -> tuple[syntax.Expression, ...]:
    calls = aggregate.aggregates_of(body)
    return tuple(dict.fromkeys(part for call in calls if call.distinct for part in call.arguments))


def _shared_group_by(
    generation: Generation,
    group: list[syntax.Body],
    operator: ops.Operator,
    sources: dict[str, ops.Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> ops.Operator:
    """Makes one ReduceSink, then a filter and a group-by for every body.

    Source: Hive's genGroupByPlan1ReduceMultiGBY.
    """
    if all(body.where is not None for body in group):
        where: syntax.Expression | None = None
        for body in group:
            if body.where is not None:
                where = body.where if where is None else syntax.Call("or", (where, body.where))
        if where is not None:
            operator = filtered(generation.sql, operator, where)
    selected = ops.Select(list(operator.columns), star=True)
    ops.attach(selected, operator)
    distinct = _distinct_arguments(group[0])
    keys = (*group[0].group_by, *distinct)
    shared, _ = aggregate.common_reduce_sink(generation.sql, selected, keys, len(distinct))
    forward = ops.Select(list(shared.columns), star=True)
    ops.attach(forward, shared)
    found: ops.Operator = forward
    for body in group:
        below: ops.Operator = forward
        if body.where is not None:
            below = filtered(generation.sql, forward, body.where)
        below, scope = aggregate.complete(generation.sql, body, below)
        found = _after_group_by(generation, body, below, scope, sources, path, sink, nested)
    return found


def _filtered(
    generation: Generation,
    body: syntax.Body,
    operator: ops.Operator,
    sources: dict[str, ops.Operator],
    path: str,
    nested: bool,
) -> ops.Operator:
    if body.where is None:
        return operator
    return where(generation, operator, body.where, sources, path, nested)


def _distinct_over_windows(body: syntax.Body) -> bool:
    return body.distinct and any(windows_in(item.expression) for item in body.items)


def _after_group_by(
    generation: Generation,
    body: syntax.Body,
    operator: ops.Operator,
    scope: Scope | None,
    sources: dict[str, ops.Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> ops.Operator:
    sql = generation.sql
    if body.having is not None:
        if scope is None or not (body.group_by or body.distinct):
            raise error(sql, 40000, "HAVING needs a GROUP BY")
        having = _spelled_out(body.having, body, scope)
        _require_known(sql, having, body)
        having_scope = replace(scope, columns=operator.columns)
        operator = where(generation, operator, having, sources, path, nested, having_scope)
        scope = _rebased(scope, operator)
    current = scope or Scope(sql, operator.columns)
    operator, current = windows(generation, body, operator, current)
    operator = select(sql, body, operator, current)
    if _distinct_over_windows(body):
        distinct = syntax.Body((syntax.SelectItem(syntax.Star()),), distinct=True)
        operator, above = aggregate.generate(sql, generation.settings, distinct, operator)
        operator = select(sql, distinct, operator, replace(above, columns=operator.columns))
    ordered = bool(body.order_by)
    if body.order_by or body.sort_by or body.distribute_by or body.cluster_by:
        operator = _sorted(generation, body, operator)
    if body.limit is not None:
        operator = _limited(operator, body.limit)
        extra = not ordered if not sink else bool(body.cluster_by or body.sort_by)
        if sink and body.destination is not None:
            extra = not ordered
        if extra:
            one = ops.ReduceSink(list(operator.columns), reducers=1)
            ops.attach(one, operator)
            operator = _limited(one, body.limit)
    if sink:
        operator = sinks.generate(generation, body, operator)
    return operator


def _require_known(sql: str, having: syntax.Expression, body: syntax.Body) -> None:
    """Raises :class:`PlanError` unless the left side of IN and a subquery is known below HAVING.

    It must be a group-by key, written as in GROUP BY, or an aggregate that the SELECT list or
    another condition has too.
    """
    known = {*body.group_by, *aggregate.aggregates_of(body)}
    for predicate in subquery_predicates(having):
        operand = predicate.arguments[0] if predicate.name == "in" else None
        if operand is None or operand in known:
            continue
        names = [part for part in syntax.walk(operand) if isinstance(part, syntax.Name)]
        if names:
            text = ".".join(names[0].parts)
            message = f"beside IN and a subquery, HAVING can't read {text}: it is no GROUP BY key"
            raise error(sql, 10009 if len(names[0].parts) > 1 else 10004, message, names[0].at)
        if aggregates_in(operand):
            message = "beside IN and a subquery, HAVING can't call an aggregate of its own"
            raise error(sql, 10128, message, predicate.at)


def _spelled_out(having: syntax.Expression, body: syntax.Body, scope: Scope) -> syntax.Expression:
    """Replaces the aliases of SELECT items in HAVING with their expressions."""
    if isinstance(having, syntax.Name) and having not in scope.known and len(having.parts) == 1:
        for item in body.items:
            if item.aliases == having.parts:
                return item.expression
    if isinstance(having, syntax.Call):
        parts = tuple(_spelled_out(part, body, scope) for part in having.arguments)
        return replace(having, arguments=parts)
    return having


def _rebased(scope: Scope, operator: ops.Operator) -> Scope:
    """Returns the scope of a group-by after a join has renamed its columns."""
    known = {}
    for expression, column in scope.known.items():
        found = column
        if operator.info(column.name) is None or operator.expressions is not None:
            by_source = {
                source.name: name
                for name, source in (operator.expressions or {}).items()
                if isinstance(source, syntax.Column)
            }
            name = by_source.get(column.name, column.name)
            found = syntax.Column(name, column.type)
        known[expression] = found
    return replace(scope, known=known)


def _limited(operator: ops.Operator, count: int) -> ops.Operator:
    found = ops.Limit(list(operator.columns), count=count)
    ops.attach(found, operator)
    return found


def _sorted(generation: Generation, body: syntax.Body, operator: ops.Operator) -> ops.Operator:
    scope = Scope(generation.sql, operator.columns, written(body, operator), grouped=False)
    sort = body.order_by or body.sort_by or tuple((key, "+") for key in body.cluster_by)
    partition = body.distribute_by or body.cluster_by
    settings = generation.settings
    if body.order_by and body.limit is None and settings.forbids("hive.strict.checks.large.query"):
        message = "ORDER BY without LIMIT is forbidden in strict mode: add a LIMIT"
        raise error(generation.sql, 40000, message)
    sink = ops.ReduceSink(
        list(operator.columns),
        keys=tuple(_sort_key(scope, key, body, operator) for key, _ in sort),
        partition_keys=tuple(scope.resolve(key) for key in partition),
        order="".join(way for _, way in sort),
        reducers=1 if body.order_by else -1,
    )
    ops.attach(sink, operator)
    extracted = ops.Select(list(operator.columns), star=True)
    ops.attach(extracted, sink)
    return extracted


def _sort_key(
    scope: Scope, key: syntax.Expression, body: syntax.Body, operator: ops.Operator
) -> syntax.Expression:
    """Resolves a sort key. An integer in ORDER BY is a column position: ORDER BY 2."""
    if isinstance(key, syntax.Constant) and key.type == "int" and body.order_by:
        at = int(key.text) - 1
        if 0 <= at < len(operator.columns):
            return operator.columns[at].column
    return scope.resolve(key)
