"""What stands after FROM: WHERE, group-by, windows, SELECT, order, limit, sink."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_hive_opt.planner.hive import aggregate, sinks
from airflow_hive_opt.planner.hive.names import (
    TABLE_FUNCTIONS,
    Scope,
    aggregates_in,
    error,
    type_of,
    windows_in,
)
from airflow_hive_opt.planner.hive.operators import (
    ColumnInfo,
    Limit,
    Operator,
    ReduceSink,
    Script,
    Select,
    TableFunction,
    UserTableFunction,
    attach,
)
from airflow_hive_opt.planner.hive.syntax import (
    Block,
    Body,
    Call,
    Column,
    Constant,
    Expression,
    Name,
    SelectItem,
    Star,
    Window,
)

if TYPE_CHECKING:
    from airflow_hive_opt.planner.hive.generate import Generator


def generate(
    generator: Generator,
    block: Block,
    operator: Operator,
    sources: dict[str, Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> Operator:
    """All bodies of a block over its FROM; gives the last operator of the last one."""
    found = operator
    for group in _body_groups(generator, block.bodies):
        if len(group) > 1:
            found = _shared_group_by(generator, group, operator, sources, path, sink, nested)
            continue
        (body,) = group
        below, scope = _filtered(generator, body, operator, sources, path, nested), None
        if aggregate.is_grouped(body) and not _distinct_over_windows(body):
            below, scope = aggregate.generate(generator.sql, generator.settings, body, below)
        found = _after_group_by(generator, body, below, scope, sources, path, sink, nested)
    return found


def _body_groups(generator: Generator, bodies: tuple[Body, ...]) -> list[list[Body]]:
    """Bodies of a multi-insert that share a reducer: same keys, same DISTINCT."""
    groups: list[list[Body]] = []
    for body in bodies:
        for group in groups if len(bodies) > 1 else ():
            if _share_reducer(generator, group[0], body):
                group.append(body)
                break
        else:
            groups.append([body])
    return groups


def _share_reducer(generator: Generator, first: Body, second: Body) -> bool:
    settings = generator.settings
    if not settings.is_on("hive.multigroupby.singlereducer"):
        return False
    if settings.is_on("hive.groupby.skewindata"):
        return False
    if not (first.group_by and first.group_by == second.group_by):
        return False
    return _distinct_arguments(first) == _distinct_arguments(second)


def _distinct_arguments(body: Body) -> tuple[Expression, ...]:
    calls = aggregate.aggregates_of(body)
    return tuple(dict.fromkeys(part for call in calls if call.distinct for part in call.arguments))


def _shared_group_by(
    generator: Generator,
    group: list[Body],
    operator: Operator,
    sources: dict[str, Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> Operator:
    """genGroupByPlan1ReduceMultiGBY: one ReduceSink, a filter and a group-by for every body."""
    if all(body.where is not None for body in group):
        where: Expression | None = None
        for body in group:
            if body.where is not None:
                where = body.where if where is None else Call("or", (where, body.where))
        if where is not None:
            operator = generator.filter(operator, where)
    selected = Select(list(operator.columns), star=True)
    attach(selected, operator)
    distinct = _distinct_arguments(group[0])
    keys = (*group[0].group_by, *distinct)
    shared, _ = aggregate.common_reduce_sink(generator.sql, selected, keys, len(distinct))
    forward = Select(list(shared.columns), star=True)
    attach(forward, shared)
    found: Operator = forward
    for body in group:
        below: Operator = forward
        if body.where is not None:
            below = generator.filter(forward, body.where)
        below, scope = aggregate.complete(generator.sql, body, below)
        found = _after_group_by(generator, body, below, scope, sources, path, sink, nested)
    return found


def _filtered(
    generator: Generator,
    body: Body,
    operator: Operator,
    sources: dict[str, Operator],
    path: str,
    nested: bool,
) -> Operator:
    if body.where is None:
        return operator
    return generator.where(operator, body.where, sources, path, nested)


def _distinct_over_windows(body: Body) -> bool:
    return body.distinct and any(windows_in(item.expression) for item in body.items)


def _after_group_by(
    generator: Generator,
    body: Body,
    operator: Operator,
    scope: Scope | None,
    sources: dict[str, Operator],
    path: str,
    sink: bool,
    nested: bool,
) -> Operator:
    sql = generator.sql
    if body.having is not None:
        if scope is None or not (body.group_by or body.distinct):
            raise error(sql, 40000, "HAVING needs a GROUP BY")
        having = _spelled_out(body.having, body, scope)
        having_scope = replace(scope, columns=operator.columns)
        operator = generator.where(operator, having, sources, path, nested, having_scope)
        scope = _rebased(scope, operator)
    current = scope or Scope(sql, operator.columns)
    operator, current = _windows(generator, body, operator, current)
    operator = _select(sql, body, operator, current)
    if _distinct_over_windows(body):
        distinct = Body((SelectItem(Star()),), distinct=True)
        operator, above = aggregate.generate(sql, generator.settings, distinct, operator)
        operator = _select(sql, distinct, operator, replace(above, columns=operator.columns))
    ordered = bool(body.order_by)
    if body.order_by or body.sort_by or body.distribute_by or body.cluster_by:
        operator = _sorted(generator, body, operator)
    if body.limit is not None:
        operator = _limited(operator, body.limit)
        extra = not ordered if not sink else bool(body.cluster_by or body.sort_by)
        if sink and body.destination is not None:
            extra = not ordered
        if extra:
            one = ReduceSink(list(operator.columns), reducers=1)
            attach(one, operator)
            operator = _limited(one, body.limit)
    if sink:
        operator = sinks.generate(generator, body, operator)
    return operator


def _spelled_out(having: Expression, body: Body, scope: Scope) -> Expression:
    """HAVING with the names that SELECT gives replaced by what they stand for."""
    if isinstance(having, Name) and having not in scope.known and len(having.parts) == 1:
        for item in body.items:
            if item.aliases == having.parts:
                return item.expression
    if isinstance(having, Call):
        parts = tuple(_spelled_out(part, body, scope) for part in having.arguments)
        return replace(having, arguments=parts)
    return having


def _rebased(scope: Scope, operator: Operator) -> Scope:
    """The scope of a group-by after a join has renamed its columns."""
    known = {}
    for expression, column in scope.known.items():
        found = column
        if operator.info(column.name) is None or operator.expressions is not None:
            by_source = {
                source.name: name
                for name, source in (operator.expressions or {}).items()
                if isinstance(source, Column)
            }
            name = by_source.get(column.name, column.name)
            found = Column(name, column.type)
        known[expression] = found
    return replace(scope, known=known)


def _limited(operator: Operator, count: int) -> Operator:
    found = Limit(list(operator.columns), count=count)
    attach(found, operator)
    return found


def _windows(
    generator: Generator, body: Body, operator: Operator, scope: Scope
) -> tuple[Operator, Scope]:
    """A ReduceSink and a PTF for every way the windows partition and order rows."""
    calls = list(dict.fromkeys(call for item in body.items for call in windows_in(item.expression)))
    groups: dict[tuple[object, object], list[Call]] = {}
    for call in calls:
        if any(aggregates_in(argument) for argument in call.arguments):
            message = f"an aggregate can't stand inside {call.name}() OVER: use a subquery"
            raise error(generator.sql, 40000, message, call.at)
        window = call.over or Window((), ())
        groups.setdefault((window.partition_by, window.order_by), []).append(call)
    known = dict(scope.known)
    for (_, _), members in groups.items():
        window = members[0].over or Window((), ())
        current = Scope(generator.sql, scope.columns and operator.columns, known, scope.grouped)
        partition = tuple(current.resolve(key) for key in window.partition_by)
        partition = partition or (Constant("0", "int"),)
        order = tuple(current.resolve(key) for key, _ in window.order_by)
        keys = tuple(dict.fromkeys((*partition, *order)))
        sink = ReduceSink(
            list(operator.columns),
            keys=keys,
            partition_keys=partition,
            order="+" * len(partition) + "".join(way for _, way in window.order_by),
        )
        sink.order = sink.order[: len(keys)]
        attach(sink, operator)
        columns = list(operator.columns)
        expressions: dict[str, Expression | None] = {info.internal: info.column for info in columns}
        for call in members:
            internal = f"{call.name}_window_{len(columns)}"
            columns.append(ColumnInfo(internal, None, "", type_of(call), hidden=True))
            expressions[internal] = None
            known[call] = columns[-1].column
        operator = TableFunction(columns, expressions=expressions, window=window)
        attach(operator, sink)
    columns_above = operator.columns if scope.columns else scope.columns
    return operator, Scope(generator.sql, columns_above, known, scope.grouped)


def _select(sql: str, body: Body, operator: Operator, scope: Scope) -> Operator:
    columns: list[ColumnInfo] = []
    expressions: dict[str, Expression | None] = {}

    def put(table: str | None, name: str, expression: Expression) -> None:
        internal = f"_col{len(columns)}"
        columns.append(ColumnInfo(internal, table, name, type_of(expression)))
        expressions[internal] = expression

    generating: tuple[Call, tuple[str, ...]] | None = None
    for at, item in enumerate(body.items):
        expression = item.expression
        if isinstance(expression, Star):
            _star(sql, expression, operator, scope, put)
            continue
        if isinstance(expression, Call) and expression.name in TABLE_FUNCTIONS:
            if len(body.items) > 1 or body.group_by:
                message = f"{expression.name}() must be the only item of SELECT"
                raise error(sql, 10081, message, expression.at)
            generating = (expression, item.aliases)
            for argument in expression.arguments:
                put(None, "", scope.resolve(argument))
            continue
        resolved = scope.resolve(expression)
        if item.aliases:
            put(None, item.aliases[0], resolved)
        elif isinstance(expression, Name):
            table = expression.parts[0] if len(expression.parts) > 1 else None
            put(table, expression.parts[-1], resolved)
        else:
            put(None, f"_c{at}", resolved)
    only_star = len(body.items) == 1 and isinstance(body.items[0].expression, Star)
    found: Operator = Select(columns, expressions=expressions, star=only_star)
    attach(found, operator)
    if generating is not None:
        call, names = generating
        names = names or tuple(f"col{at}" for at in range(max(1, len(call.arguments) - 1)))
        made = [ColumnInfo(f"_col{at}", None, name) for at, name in enumerate(names)]
        function = UserTableFunction(
            made, expressions={info.internal: None for info in made}, function=call.name
        )
        attach(function, found)
        return function
    if body.transform is not None:
        made = [
            ColumnInfo(f"_col{at}", None, name) for at, name in enumerate(body.transform.columns)
        ]
        script = Script(
            made,
            expressions={info.internal: None for info in made},
            script=body.transform.script,
        )
        attach(script, found)
        return script
    return found


def _star(sql: str, star: Star, operator: Operator, scope: Scope, put: object) -> None:
    wanted = [
        info
        for info in operator.columns
        if not info.hidden and (star.qualifier is None or info.table == star.qualifier)
    ]
    if not wanted:
        raise error(sql, 10002, f"there are no columns for {star.qualifier or ''}*", star.at)
    if scope.grouped and operator.expressions is not None and not scope.columns:
        held = {column.name for column in scope.known.values()}
        if not {info.internal for info in wanted} <= held:
            raise error(sql, 10025, "* reads columns that are no keys of the GROUP BY", star.at)
    for info in wanted:
        put(info.table, info.name, info.column)  # type: ignore[operator]


def _sorted(generator: Generator, body: Body, operator: Operator) -> Operator:
    scope = Scope(generator.sql, operator.columns, _written(body, operator), grouped=False)
    sort = body.order_by or body.sort_by or tuple((key, "+") for key in body.cluster_by)
    partition = body.distribute_by or body.cluster_by
    settings = generator.settings
    if body.order_by and body.limit is None and settings.forbids("hive.strict.checks.large.query"):
        message = "ORDER BY without LIMIT is forbidden in strict mode: add a LIMIT"
        raise error(generator.sql, 40000, message)
    sink = ReduceSink(
        list(operator.columns),
        keys=tuple(_sort_key(scope, key, body, operator) for key, _ in sort),
        partition_keys=tuple(scope.resolve(key) for key in partition),
        order="".join(way for _, way in sort),
        reducers=1 if body.order_by else -1,
    )
    attach(sink, operator)
    extracted = Select(list(operator.columns), star=True)
    attach(extracted, sink)
    return extracted


def _sort_key(scope: Scope, key: Expression, body: Body, operator: Operator) -> Expression:
    """ORDER BY 2 means the second column, where the setting says so (it does by default)."""
    if isinstance(key, Constant) and key.type == "int" and body.order_by:
        at = int(key.text) - 1
        if 0 <= at < len(operator.columns):
            return operator.columns[at].column
    return scope.resolve(key)


def _written(body: Body, operator: Operator) -> dict[Expression, Column]:
    """Select items by how they were written, as ORDER BY may repeat them."""
    if body.transform is not None or any(isinstance(i.expression, Star) for i in body.items):
        return {}
    return {
        item.expression: info.column
        for item, info in zip(body.items, operator.columns)
        if isinstance(item.expression, Call)
    }
