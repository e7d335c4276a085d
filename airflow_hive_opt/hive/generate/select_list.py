"""The SELECT list: columns, stars and window functions."""

from __future__ import annotations

from airflow_hive_opt.hive.generate.names import (
    TABLE_FUNCTIONS,
    Scope,
    aggregates_in,
    error,
    type_of,
    windows_in,
)
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax


def windows(
    sql: str, body: syntax.Body, operator: ops.Operator, scope: Scope
) -> tuple[ops.Operator, Scope]:
    """Makes a ReduceSink and a PTF for every distinct PARTITION BY and ORDER BY of the windows.

    Returns the last operator and the scope above it. Raises :class:`PlanError` for an aggregate
    inside a window function.
    """
    groups: dict[tuple[object, object], list[tuple[syntax.Call, syntax.Window]]] = {}
    for call in dict.fromkeys(call for item in body.items for call in windows_in(item.expression)):
        if any(aggregates_in(argument) for argument in call.arguments):
            message = f"an aggregate can't stand inside {call.name}() OVER: use a subquery"
            raise error(sql, 40000, message, call.at)
        window = call.over or syntax.Window((), ())
        groups.setdefault((window.partition_by, window.order_by), []).append((call, window))
    known = dict(scope.known)
    for members in groups.values():
        window = members[0][1]
        current = Scope(sql, scope.columns and operator.columns, known, scope.grouped)
        partition = tuple(map(current.resolve, window.partition_by))
        partition = partition or (syntax.Constant("0", "int"),)
        order = tuple(current.resolve(key) for key, _ in window.order_by)
        keys = tuple(dict.fromkeys((*partition, *order)))
        ways = "+" * len(partition) + "".join(way for _, way in window.order_by)
        sink = ops.ReduceSink(
            list(operator.columns), keys=keys, partition_keys=partition, order=ways[: len(keys)]
        )
        ops.attach(sink, operator)
        columns = list(operator.columns)
        expressions: dict[str, syntax.Expression | None] = {
            info.internal: info.column for info in columns
        }
        for call, _ in members:
            internal = f"{call.name}_window_{len(columns)}"
            columns.append(ops.ColumnInfo(internal, None, "", type_of(call), hidden=True))
            expressions[internal] = None
            known[call] = columns[-1].column
        operator = ops.attach(ops.TableFunction(columns, expressions=expressions), sink)
    columns_above = operator.columns if scope.columns else scope.columns
    return operator, Scope(sql, columns_above, known, scope.grouped)


def select(sql: str, body: syntax.Body, operator: ops.Operator, scope: Scope) -> ops.Operator:
    """Makes the Select of a body's items; raises :class:`PlanError` for an unknown column."""
    columns: list[ops.ColumnInfo] = []
    expressions: dict[str, syntax.Expression | None] = {}

    def put(table: str | None, name: str, expression: syntax.Expression) -> None:
        internal = f"_col{len(columns)}"
        columns.append(ops.ColumnInfo(internal, table, name, type_of(expression)))
        expressions[internal] = expression

    generating: syntax.Call | None = None
    for at, item in enumerate(body.items):
        expression = item.expression
        if isinstance(expression, syntax.Star):
            for info in _star(sql, expression, operator, scope):
                put(info.table, info.name, info.column)
        elif isinstance(expression, syntax.Call) and expression.name in TABLE_FUNCTIONS:
            if len(body.items) > 1 or body.group_by:
                message = f"{expression.name}() must be the only item of SELECT"
                raise error(sql, 10081, message, expression.at)
            generating = expression
            for argument in expression.arguments:
                put(None, "", scope.resolve(argument))
        elif item.aliases:
            put(None, item.aliases[0], scope.resolve(expression))
        elif isinstance(expression, syntax.Name):
            table = expression.parts[0] if len(expression.parts) > 1 else None
            put(table, expression.parts[-1], scope.resolve(expression))
        else:
            put(None, f"_c{at}", scope.resolve(expression))
    only_star = len(body.items) == 1 and isinstance(body.items[0].expression, syntax.Star)
    found = ops.attach(ops.Select(columns, expressions=expressions, star=only_star), operator)
    if generating is not None:
        count = max(1, len(generating.arguments) - 1)
        names = body.items[0].aliases or tuple(f"col{at}" for at in range(count))
        return _made(ops.UserTableFunction([], function=generating.name), names, found)
    if body.transform is not None:
        script = ops.Script([], script=body.transform.script)
        return _made(script, body.transform.columns, found)
    return found


def _made(operator: ops.Operator, names: tuple[str, ...], below: ops.Operator) -> ops.Operator:
    """Gives an operator columns that it makes itself."""
    operator.columns = [ops.ColumnInfo(f"_col{at}", None, name) for at, name in enumerate(names)]
    operator.expressions = {info.internal: None for info in operator.columns}
    return ops.attach(operator, below)


def _star(
    sql: str, star: syntax.Star, operator: ops.Operator, scope: Scope
) -> list[ops.ColumnInfo]:
    wanted = [info for info in operator.visible if star.qualifier in (None, info.table)]
    if not wanted:
        raise error(sql, 10002, f"there are no columns for {star.qualifier or ''}*", star.at)
    if scope.grouped and operator.expressions is not None and not scope.columns:
        held = {column.name for column in scope.known.values()}
        if not {info.internal for info in wanted} <= held:
            raise error(sql, 10025, "* reads columns that are no keys of the GROUP BY", star.at)
    return wanted


def written(body: syntax.Body, operator: ops.Operator) -> dict[syntax.Expression, syntax.Column]:
    """Maps the calls of the SELECT list to their columns, because ORDER BY may repeat them."""
    if body.transform is not None or any(isinstance(i.expression, syntax.Star) for i in body.items):
        return {}
    return {
        item.expression: info.column
        for item, info in zip(body.items, operator.columns)
        if isinstance(item.expression, syntax.Call)
    }
