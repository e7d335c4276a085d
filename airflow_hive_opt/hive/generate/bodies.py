"""The clauses after FROM: WHERE, group-by, windows, SELECT, order, limit, sink."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate import aggregate, sinks
from airflow_hive_opt.hive.generate.generation import (
    BlockContext,
    Generation,
    filtered,
    reduce_sink,
)
from airflow_hive_opt.hive.generate.names import Scope, aggregates_in, error, windows_in
from airflow_hive_opt.hive.generate.select_list import select, windows, written
from airflow_hive_opt.hive.generate.subquery_joins import subquery_predicates
from airflow_hive_opt.hive.generate.where import where
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.settings import Settings


def generate(context: BlockContext, block: syntax.Block, operator: ops.Operator) -> ops.Operator:
    """Makes all bodies of a block over its FROM and returns the last operator of the last body."""
    generation = context.generation
    found = operator
    for group in _body_groups(generation.settings, block.bodies):
        if len(group) > 1:
            found = _shared_group_by(context, group, operator)
            continue
        (body,) = group
        below, scope = operator, None
        if body.where is not None:
            below = where(context, operator, body.where)
        if aggregate.is_grouped(body) and not _distinct_over_windows(body):
            below, scope = aggregate.generate(generation.sql, generation.settings, body, below)
        found = _after_group_by(context, body, below, scope)
    return found


def _body_groups(settings: Settings, bodies: tuple[syntax.Body, ...]) -> list[list[syntax.Body]]:
    """Groups the bodies of a multi-insert that share a reducer: same keys, same DISTINCT."""
    skewed = settings.is_on("hive.groupby.skewindata")
    if skewed or not settings.is_on("hive.multigroupby.singlereducer"):
        return [[body] for body in bodies]
    groups: dict[object, list[syntax.Body]] = {}
    for body in bodies:
        shuffle = (body.group_by, _distinct_arguments(body)) if body.group_by else id(body)
        groups.setdefault(shuffle, []).append(body)
    return list(groups.values())


def _distinct_arguments(body: syntax.Body) -> tuple[syntax.Expression, ...]:
    calls = aggregate.aggregates_of(body)
    return tuple(dict.fromkeys(part for call in calls if call.distinct for part in call.arguments))


def _shared_group_by(
    context: BlockContext, group: list[syntax.Body], operator: ops.Operator
) -> ops.Operator:
    """Makes one ReduceSink, then a filter and a group-by for every body.

    Source: Hive's genGroupByPlan1ReduceMultiGBY.
    """
    sql = context.generation.sql
    conditions = [body.where for body in group if body.where is not None]
    if len(conditions) == len(group):
        operator = filtered(sql, operator, syntax.joined("or", conditions))
    selected = ops.attach(ops.Select(list(operator.columns), star=True), operator)
    resolve = Scope(sql, selected.columns).resolve
    keys, distinct = group[0].group_by, _distinct_arguments(group[0])
    shared = reduce_sink(selected, list(map(resolve, keys)), list(map(resolve, distinct)))
    forward = ops.attach(ops.Select(list(shared.columns), star=True), shared)
    found: ops.Operator = forward
    for body in group:
        below = forward if body.where is None else filtered(sql, forward, body.where)
        found = _after_group_by(context, body, *aggregate.complete(sql, body, below))
    return found


def _distinct_over_windows(body: syntax.Body) -> bool:
    return body.distinct and any(windows_in(item.expression) for item in body.items)


def _after_group_by(
    context: BlockContext, body: syntax.Body, operator: ops.Operator, scope: Scope | None
) -> ops.Operator:
    generation = context.generation
    sql = generation.sql
    if body.having is not None:
        if scope is None or not (body.group_by or body.distinct):
            raise error(sql, 40000, "HAVING needs a GROUP BY")
        having = _spelled_out(body.having, body, scope)
        _require_known(sql, having, body)
        operator = where(context, operator, having, replace(scope, columns=operator.columns))
        scope = _rebased(scope, operator)
    operator, current = windows(sql, body, operator, scope or Scope(sql, operator.columns))
    operator = select(sql, body, operator, current)
    if _distinct_over_windows(body):
        distinct = syntax.Body((syntax.SelectItem(syntax.Star()),), distinct=True)
        operator, above = aggregate.generate(sql, generation.settings, distinct, operator)
        operator = select(sql, distinct, operator, replace(above, columns=operator.columns))
    if body.order_by or body.sort_by or body.distribute_by or body.cluster_by:
        operator = _sorted(generation, body, operator)
    if body.limit is not None:
        operator = _limited(operator, body.limit)
        result = context.sink and body.destination is None
        if bool(body.cluster_by or body.sort_by) if result else not body.order_by:
            operator = _limited(reduce_sink(operator, ()), body.limit)
    if context.sink:
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
    items = {item.aliases: item.expression for item in reversed(body.items)}

    def item_of(part: syntax.Expression) -> syntax.Expression | None:
        if not isinstance(part, syntax.Name) or part in scope.known or len(part.parts) > 1:
            return None
        return items.get(part.parts)

    return syntax.rewritten(having, item_of)


def _rebased(scope: Scope, operator: ops.Operator) -> Scope:
    """Returns the scope of a group-by after a join has renamed its columns."""
    if operator.expressions is None:
        return scope
    by_source = {
        source.name: name
        for name, source in operator.expressions.items()
        if isinstance(source, syntax.Column)
    }
    return replace(
        scope,
        known={
            expression: syntax.Column(by_source.get(column.name, column.name), column.type)
            for expression, column in scope.known.items()
        },
    )


def _limited(operator: ops.Operator, count: int) -> ops.Operator:
    return ops.attach(ops.Limit(list(operator.columns), count=count), operator)


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
    return ops.attach(ops.Select(list(operator.columns), star=True), sink)


def _sort_key(
    scope: Scope, key: syntax.Expression, body: syntax.Body, operator: ops.Operator
) -> syntax.Expression:
    """Resolves a sort key. An integer in ORDER BY is a column position: ORDER BY 2."""
    if isinstance(key, syntax.Constant) and key.type == "int" and body.order_by:
        at = int(key.text) - 1
        if 0 <= at < len(operator.columns):
            return operator.columns[at].column
    return scope.resolve(key)
