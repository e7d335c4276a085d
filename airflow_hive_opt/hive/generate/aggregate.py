"""Makes GroupBys and ReduceSinks of GROUP BY and DISTINCT (SemanticAnalyzer.genGroupByPlan...)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_hive_opt.hive.generate.generation import reduce_sink
from airflow_hive_opt.hive.generate.names import Scope, aggregates_in, error, is_aggregate, type_of
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.zip_strict import zip_strict


def group_keys(body: syntax.Body, operator: ops.Operator) -> tuple[syntax.Expression, ...]:
    """Returns the group-by keys of a body: those of GROUP BY, or all columns of SELECT DISTINCT."""
    if not body.distinct:
        return body.group_by
    keys: list[syntax.Expression] = []
    for item in body.items:
        if isinstance(item.expression, syntax.Star):
            qualifier = item.expression.qualifier
            keys += [
                syntax.Name((info.table, info.name) if info.table else (info.name,))
                for info in operator.visible
                if qualifier in (None, info.table)
            ]
        else:
            keys.append(item.expression)
    return tuple(dict.fromkeys(keys))


def aggregates_of(body: syntax.Body) -> tuple[syntax.Call, ...]:
    """Returns the aggregate calls of the SELECT list and of HAVING, each once.

    An aggregate that IN compares with a subquery does not count: Hive does not look for it there.
    """
    found = [call for item in body.items for call in aggregates_in(item.expression)]
    if body.having is not None:
        found += _of_having(body.having)
    return tuple(dict.fromkeys(found))


def _of_having(expression: syntax.Expression) -> list[syntax.Call]:
    if not isinstance(expression, syntax.Call):
        return []
    if any(isinstance(part, syntax.Subquery) for part in expression.arguments):
        return []
    if is_aggregate(expression):
        return [expression]
    return [call for part in expression.arguments for call in _of_having(part)]


def is_grouped(body: syntax.Body) -> bool:
    """Tells whether a body needs a GroupBy."""
    return bool(body.group_by or body.distinct or aggregates_of(body))


def generate(
    sql: str, settings: Settings, body: syntax.Body, operator: ops.Operator
) -> tuple[ops.Operator, Scope]:
    """Makes the group-by of a body as the settings require.

    Returns its last operator and the scope of the clauses above it. Raises :class:`PlanError` for
    unknown names, or if the settings do not allow the group-by.
    """
    selected = ops.attach(ops.Select(list(operator.columns), star=True), operator)
    steps = _steps(sql, body, selected, group_keys(body, operator), body.grouping_sets)
    on_map = settings.is_on("hive.map.aggr")
    if body.grouping_sets and not on_map:
        raise error(sql, 10209, "grouping sets need hive.map.aggr=true")
    if settings.is_on("hive.groupby.skewindata"):
        if len({call.arguments for call in steps.aggregates if call.distinct}) > 1:
            message = "hive.groupby.skewindata allows DISTINCT of one expression only"
            raise error(sql, 10022, message)
        found = steps.two_jobs(on_map)
    else:
        found = steps.one_job(on_map)
    return found, steps.scope(sql, found, operator)


def complete(sql: str, body: syntax.Body, operator: ops.Operator) -> tuple[ops.Operator, Scope]:
    """Makes a group-by over a shuffle that already brings equal keys together."""
    steps = _steps(sql, body, operator, group_keys(body, operator), 0)
    found = steps.group(operator, "complete", steps.keys)
    return found, steps.scope(sql, found, operator)


def _steps(
    sql: str,
    body: syntax.Body,
    operator: ops.Operator,
    written: tuple[syntax.Expression, ...],
    grouping_sets: int,
) -> _Steps:
    """Resolves the keys and the aggregates of a body."""
    calls = aggregates_of(body)
    scope = Scope(sql, operator.columns)
    keys = list(map(scope.resolve, written))
    aggregates = [replace(call, arguments=scope.arguments(call)) for call in calls]
    return _Steps(operator, written, keys, calls, aggregates, grouping_sets)


@dataclass(frozen=True)
class _Steps:
    """The GroupBys and ReduceSinks of one group-by."""

    input: ops.Operator
    written: tuple[syntax.Expression, ...]
    keys: list[syntax.Expression]
    calls: tuple[syntax.Call, ...]
    aggregates: list[syntax.Call]
    grouping_sets: int

    @property
    def distinct(self) -> list[syntax.Expression]:
        """The arguments of DISTINCT aggregates, each once."""
        calls = (call for call in self.aggregates if call.distinct)
        return list(dict.fromkeys(part for call in calls for part in call.arguments))

    def one_job(self, on_map: bool) -> ops.Operator:
        """Aggregates in the mapper if ``on_map``, then in the reducer."""
        if not on_map:
            return self.group(
                reduce_sink(self.input, self.keys, self.distinct), "complete", self.keys
            )
        partial, keys, distinct = self._partial()
        return self.group(reduce_sink(partial, keys, distinct), "mergepartial", keys)

    def two_jobs(self, on_map: bool) -> ops.Operator:
        """Spreads rows at random in a first job and by key in a second, for skewed keys."""
        if on_map and not self.keys and not self.distinct:
            return self.one_job(True)
        below, keys, distinct = self.input, self.keys, self.distinct
        if on_map:
            below, keys, distinct = self._partial()
        spread = reduce_sink(below, keys, distinct)
        spread.partition_keys = tuple(distinct) or (syntax.Call("rand", ()),)
        spread.reducers = -1
        middle = self.group(spread, "partials" if on_map else "partial1", keys)
        inner = self._key_columns(middle)[: len(keys)]
        return self.group(reduce_sink(middle, inner), "final", inner)

    def _partial(self) -> tuple[ops.Operator, list[syntax.Expression], list[syntax.Expression]]:
        """Aggregates in the mapper; returns also the columns of its keys and distinct values."""
        found = self.group(self.input, "hash", [*self.keys, *self.distinct])
        columns = self._key_columns(found)
        width = len(self.keys) + (1 if self.grouping_sets else 0)
        return found, columns[:width], columns[width:]

    def group(self, below: ops.Operator, mode: str, keys: list[syntax.Expression]) -> ops.GroupBy:
        """Makes a GroupBy over ``below``."""
        columns: list[ops.ColumnInfo] = []
        expressions: dict[str, syntax.Expression | None] = {}
        for key in keys:
            internal = f"_col{len(columns)}"
            info = below.info(key.name) if isinstance(key, syntax.Column) else None
            table, name = (info.table, info.name) if info else (None, "")
            columns.append(ops.ColumnInfo(internal, table, name, type_of(key)))
            expressions[internal] = key
        if self.grouping_sets and mode in ("hash", "complete"):
            internal = f"_col{len(columns)}"
            columns.insert(len(self.keys), ops.ColumnInfo(internal, None, "grouping__id", "int"))
            expressions[internal] = None
        for call in self.aggregates:
            internal = f"_col{len(columns)}"
            columns.append(ops.ColumnInfo(internal, None, "", type_of(call)))
            expressions[internal] = None
        found = ops.GroupBy(
            columns,
            expressions=expressions,
            mode=mode,
            keys=tuple(keys),
            aggregates=tuple(self.aggregates),
            grouping_sets=self.grouping_sets,
        )
        return ops.attach(found, below)

    def _key_columns(self, group: ops.GroupBy) -> list[syntax.Expression]:
        """Returns the columns that hold a GroupBy's keys."""
        count = len(group.columns) - len(self.aggregates)
        return [info.column for info in group.columns[:count]]

    def scope(self, sql: str, found: ops.Operator, source: ops.Operator) -> Scope:
        """Returns the names that SELECT and HAVING may use above the group-by."""
        known: dict[syntax.Expression, syntax.Column] = {}
        for written, resolved, info in zip(self.written, self.keys, found.columns):
            known[written] = info.column
            if isinstance(resolved, syntax.Column):
                origin = source.info(resolved.name)
                if origin is not None:
                    known[syntax.Name((origin.name,))] = info.column
                    if origin.table:
                        known[syntax.Name((origin.table, origin.name))] = info.column
        if self.grouping_sets:
            known[syntax.Name(("grouping__id",))] = found.columns[len(self.keys)].column
        count = len(found.columns) - len(self.aggregates)
        for call, info in zip_strict(self.calls, found.columns[count:]):
            known[call] = info.column
        return Scope(sql, [], known, grouped=True)
