"""LATERAL VIEW: joins each row with the rows that a table function makes of it."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate.names import Scope
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Call, Expression, LateralView, Source
from airflow_hive_opt.statement.zip_strict import zip_strict


def lateral_views(sql: str, source: Source, below: ops.Operator) -> ops.Operator:
    """Makes the LVF, its Select, its table function, and the LVJ that joins both branches."""
    if not isinstance(source, LateralView):
        return below
    below = lateral_views(sql, source.source, below)
    forward = ops.LateralViewForward(list(below.columns))
    ops.attach(forward, below)
    kept = ops.Select(list(below.columns), star=True)
    ops.attach(kept, forward)
    scope = Scope(sql, below.columns)
    arguments = [scope.resolve(argument) for argument in source.call.arguments]
    names = source.columns or tuple(f"col{at}" for at in range(_width(source.call)))
    argument_columns = [ops.ColumnInfo(f"_col{at}", None, "") for at, _ in enumerate(arguments)]
    given = ops.Select(
        argument_columns,
        expressions={f"_col{at}": argument for at, argument in enumerate(arguments)},
    )
    ops.attach(given, forward)
    internals = _function_columns(source.call.name, len(names))
    made = [
        ops.ColumnInfo(internal, source.alias, name, "unknown")
        for internal, name in zip_strict(internals, names)
    ]
    function = ops.UserTableFunction(
        made, expressions=dict.fromkeys(internals), function=source.call.name
    )
    ops.attach(function, given)
    columns: list[ops.ColumnInfo] = []
    expressions: dict[str, Expression | None] = {}
    for info in below.columns:
        internal = f"_col{len(columns)}"
        columns.append(replace(info, internal=internal))
        expressions[internal] = info.column
    for info in made:
        internal = f"_col{len(columns)}"
        columns.append(replace(info, internal=internal))
        expressions[internal] = info.column
    joined = ops.LateralViewJoin(columns, expressions=expressions, alias=source.alias)
    ops.attach(joined, kept, function)
    return joined


def _width(call: Call) -> int:
    return {"posexplode": 2}.get(call.name, max(1, len(call.arguments) - 1))


def _function_columns(function: str, count: int) -> list[str]:
    """Returns the table function's own names for its columns."""
    if function == "explode":
        return ["col"] if count == 1 else ["key", "value"]
    if function == "posexplode":
        return ["pos", "val"][:count]
    return [f"c{at}" if function == "json_tuple" else f"col{at}" for at in range(count)]
