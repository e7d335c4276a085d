"""Makes the FileSinks, with the shuffle that a bucketed table needs."""

from __future__ import annotations

from airflow_hive_opt.hive.generate.generation import Generation
from airflow_hive_opt.hive.generate.names import error
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser.syntax import Body, Call, Column, Expression
from airflow_hive_opt.statement.catalog import Buckets, Table


def generate(generation: Generation, body: Body, operator: ops.Operator) -> ops.Operator:
    """Makes the FileSink of a body; raises :class:`PlanError` for a wrong number of columns."""
    destination = body.destination
    kind = destination.kind if destination else "SELECT"
    name = destination.table if destination else None
    table = generation.catalog.table(name) if name is not None else None
    if table is not None and destination and kind != "CREATE TABLE AS":
        width = len(operator.visible)
        wanted = len(table.columns) + destination.dynamic
        if width != wanted:
            message = f"{name} takes {wanted} columns, the query gives {width}"
            raise error(generation.sql, 10044, message)
        operator = _converted(operator, table)
        if table.buckets is not None:
            operator = _bucketed(operator, table, table.buckets)
    found = ops.attach(ops.FileSink(list(operator.columns), kind=kind, table=name), operator)
    generation.sinks.append(found)
    return found


def _converted(operator: ops.Operator, table: Table) -> ops.Operator:
    """Adds a Select that casts rows to the types of the target table, if a type differs."""
    columns = operator.visible
    casts: dict[str, Expression | None] = {}
    for info, wanted in zip(columns, table.columns):
        same = info.type.partition("(")[0] == wanted.type.partition("(")[0]
        casts[info.internal] = (
            info.column if same else Call("cast", (info.column,), note=wanted.type)
        )
    if all(isinstance(cast, Column) for cast in casts.values()):
        return operator
    for info in columns[len(table.columns) :]:
        casts[info.internal] = info.column
    return ops.attach(ops.Select(columns, expressions=casts), operator)


def _bucketed(operator: ops.Operator, table: Table, buckets: Buckets) -> ops.Operator:
    """Adds a ReduceSink with one reducer for each bucket, sorted by the table's sort columns."""
    names = [column.name for column in table.columns]
    columns = operator.visible

    def column(name: str) -> Column:
        return columns[names.index(name)].column

    if max(map(names.index, buckets.columns)) >= len(columns):
        return operator
    sink = ops.ReduceSink(
        list(operator.columns),
        keys=tuple(column(name) for name, _ in buckets.sort),
        partition_keys=tuple(column(name) for name in buckets.columns),
        order="".join("-" if way == "desc" else "+" for _, way in buckets.sort),
        reducers=buckets.count,
    )
    ops.attach(sink, operator)
    return ops.attach(ops.Select(list(operator.columns), star=True), sink)
