"""LATERAL VIEW: joins each row with the rows that a table function makes of it."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate.names import Scope
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Call, LateralView, Source
from airflow_hive_opt.statement.zip_strict import zip_strict


def lateral_views(sql: str, source: Source | None, below: ops.Operator) -> ops.Operator:
    """Adds the LATERAL VIEWs of a FROM item above ``below``.

    Each is a LateralViewForward with two branches, a Select and a table function, and the
    LateralViewJoin that joins them.
    """
    if not isinstance(source, LateralView):
        return below
    below = lateral_views(sql, source.source, below)
    forward = ops.attach(ops.LateralViewForward(list(below.columns)), below)
    kept = ops.attach(ops.Select(list(below.columns), star=True), forward)
    scope = Scope(sql, below.columns)
    arguments = {f"_col{at}": scope.resolve(each) for at, each in enumerate(source.call.arguments)}
    given = ops.Select([ops.ColumnInfo(name, None, "") for name in arguments])
    given.expressions = {**arguments}
    ops.attach(given, forward)
    names = source.columns or tuple(f"col{at}" for at in range(_width(source.call)))
    internals = _function_columns(source.call.name, len(names))
    made = [
        ops.ColumnInfo(internal, source.alias, name, "unknown")
        for internal, name in zip_strict(internals, names)
    ]
    function = ops.UserTableFunction(
        made, expressions=dict.fromkeys(internals), function=source.call.name
    )
    ops.attach(function, given)
    inputs = [*below.columns, *made]
    columns = [replace(info, internal=f"_col{at}") for at, info in enumerate(inputs)]
    joined = ops.LateralViewJoin(columns, alias=source.alias)
    joined.expressions = {info.internal: read.column for info, read in zip_strict(columns, inputs)}
    return ops.attach(joined, kept, function)


def _width(call: Call) -> int:
    return {"posexplode": 2}.get(call.name, max(1, len(call.arguments) - 1))


def _function_columns(function: str, count: int) -> list[str]:
    """Returns the table function's own names for its columns."""
    if function == "explode":
        return ["col"] if count == 1 else ["key", "value"]
    if function == "posexplode":
        return ["pos", "val"][:count]
    return [f"c{at}" if function == "json_tuple" else f"col{at}" for at in range(count)]
