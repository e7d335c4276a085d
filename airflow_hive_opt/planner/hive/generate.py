"""Query blocks to Hive's operator graph, before any rule (SemanticAnalyzer.genPlan)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_hive_opt.planner.catalog import Catalog, Table
from airflow_hive_opt.planner.hive import bodies, joins
from airflow_hive_opt.planner.hive.names import Scope, error
from airflow_hive_opt.planner.hive.operators import (
    ColumnInfo,
    FileSink,
    Filter,
    LateralViewForward,
    LateralViewJoin,
    Operator,
    Select,
    TableScan,
    Union,
    UserTableFunction,
    attach,
)
from airflow_hive_opt.planner.hive.parser import Statement, parse_hive
from airflow_hive_opt.planner.hive.subqueries import split, subquery_predicates
from airflow_hive_opt.planner.hive.syntax import (
    Block,
    Call,
    Expression,
    JoinSource,
    LateralView,
    Query,
    Source,
    SubquerySource,
    TableSource,
    conjuncts,
)
from airflow_hive_opt.planner.hive.syntax import Union as UnionQuery
from airflow_hive_opt.planner.settings import Settings
from airflow_hive_opt.planner.zip_strict import zip_strict

_GROUPS = (
    frozenset(["tinyint", "smallint", "int", "bigint", "decimal", "float", "double"]),
    frozenset(["string", "varchar", "char"]),
)
_VIRTUAL = (("block__offset__inside__file", "bigint"), ("input__file__name", "string"))


class Generator:
    """Makes the graph of one statement; ``scans`` are its roots, ``sinks`` its leaves."""

    def __init__(self, sql: str, catalog: Catalog, settings: Settings) -> None:
        self.sql = sql
        self.catalog = catalog
        self.settings = settings
        self.scans: list[TableScan] = []
        self.sinks: list[FileSink] = []
        self._views: list[str] = []

    def statement(self, statement: Statement) -> None:
        """Generates the whole statement; raises :class:`PlanError`."""
        self.query(statement.query, "", sink=True)

    def query(self, query: Query, path: str, sink: bool = False, nested: bool = False) -> Operator:
        """The last operator of a query; with ``sink``, a FileSink for every body."""
        if isinstance(query, UnionQuery):
            return self._union(query, path, nested)
        return self._block(query, path, sink, nested)

    def _union(self, union: UnionQuery, path: str, nested: bool) -> Operator:
        left = self.query(union.left, f"{path}-subquery1", nested=nested)
        right = self.query(union.right, f"{path}-subquery2", nested=nested)
        first, second = _visible(left), _visible(right)
        if len(first) != len(second):
            message = f"the sides of the UNION have {len(first)} and {len(second)} columns"
            raise error(self.sql, 40000, message)
        for mine, other in zip_strict(first, second):
            if not _same_group(mine.type, other.type):
                message = (
                    f"column {mine.name} of the UNION is {mine.type} on one side and "
                    f"{other.type} on the other: cast one"
                )
                raise error(self.sql, 40000, message)
        columns = [replace(info, table=None) for info in first]
        found = Union(columns)
        inputs: list[Operator] = []
        for branch in (left, right):
            # A union right below is one union of all their inputs.
            if isinstance(branch, Union):
                inputs += branch.parents
                for parent in branch.parents:
                    parent.children.remove(branch)
            else:
                inputs.append(branch)
        attach(found, *inputs)
        return found

    def _block(self, block: Block, path: str, sink: bool, nested: bool) -> Operator:
        sources: dict[str, Operator] = {}
        for factor in _factors(block.source):
            if factor.alias in sources:
                message = f"two tables here are called {factor.alias}: give one an alias"
                raise error(self.sql, 10008, message, factor.at)
            sources[factor.alias] = self._factor(factor, path, block.views)
        if block.source is None:
            sources[""] = self._scan(TableScan([], alias="_dummy_table"))
        if isinstance(block.source, JoinSource) or _holds_join(block.source):
            found = joins.generate(self, block, sources, path)
        else:
            found = next(iter(sources.values()))
            if isinstance(block.source, LateralView):
                found = self.lateral_views(block.source, found)
        return bodies.generate(self, block, found, sources, path, sink, nested)

    # Sources.

    def _factor(
        self,
        factor: TableSource | SubquerySource,
        path: str,
        views: tuple[tuple[str, Query], ...],
    ) -> Operator:
        inner = f"{path}:{factor.alias}" if path else factor.alias
        if isinstance(factor, SubquerySource):
            query = factor.query
            if isinstance(query, Block) and not query.views:
                query = replace(query, views=views)
            return self._renamed(self.query(query, inner), factor.alias)
        named = dict(views)
        if factor.name in named and factor.name not in self._views:
            self._views.append(factor.name)
            query = named[factor.name]
            if isinstance(query, Block) and not query.views:
                query = replace(query, views=views)
            found = self.query(query, inner)
            self._views.remove(factor.name)
            return self._renamed(found, factor.alias)
        table = self.catalog.table(factor.name)
        if table is None:
            raise error(self.sql, 10001, f"there is no table {factor.name}", factor.at)
        if table.view is not None:
            return self._view(table, table.view, factor, inner)
        scan = TableScan(
            _table_columns(table, factor.alias),
            alias=factor.alias,
            path=inner,
            table=table,
            sampled=bool(factor.sample),
        )
        return self._scan(scan)

    def _view(self, table: Table, text: str, factor: TableSource, path: str) -> Operator:
        """A view's query, its columns named as the view's; positions in it are the view's own."""
        outer, self.sql = self.sql, text
        found = self._renamed(self.query(parse_hive(text).query, path), factor.alias)
        self.sql = outer
        names = [column.name for column in table.columns]
        if names:
            found.columns = [
                replace(info, name=name) for info, name in zip_strict(found.columns, names)
            ]
        return found

    def _scan(self, scan: TableScan) -> TableScan:
        self.scans.append(scan)
        return scan

    def _renamed(self, operator: Operator, alias: str) -> Operator:
        """The columns of a subquery's result belong to the subquery's alias."""
        operator.columns = [
            replace(info, table=alias) for info in operator.columns if not info.hidden
        ]
        return operator

    def lateral_views(self, source: Source, below: Operator) -> Operator:
        """LVF, its select and its table function, and the LVJ that puts them together."""
        if not isinstance(source, LateralView):
            return below
        below = self.lateral_views(source.source, below)
        forward = LateralViewForward(list(below.columns))
        attach(forward, below)
        kept = Select(list(below.columns), star=True)
        attach(kept, forward)
        scope = Scope(self.sql, below.columns)
        arguments = [scope.resolve(argument) for argument in source.call.arguments]
        names = source.columns or tuple(f"col{at}" for at in range(_width(source.call)))
        argument_columns = [ColumnInfo(f"_col{at}", None, "") for at, _ in enumerate(arguments)]
        given = Select(
            argument_columns,
            expressions={f"_col{at}": argument for at, argument in enumerate(arguments)},
        )
        attach(given, forward)
        internals = _function_columns(source.call.name, len(names))
        made = [
            ColumnInfo(internal, source.alias, name, "unknown")
            for internal, name in zip_strict(internals, names)
        ]
        function = UserTableFunction(
            made, expressions=dict.fromkeys(internals), function=source.call.name
        )
        attach(function, given)
        columns: list[ColumnInfo] = []
        expressions: dict[str, Expression | None] = {}
        for info in below.columns:
            internal = f"_col{len(columns)}"
            columns.append(replace(info, internal=internal))
            expressions[internal] = info.column
        for info in made:
            internal = f"_col{len(columns)}"
            columns.append(replace(info, internal=internal))
            expressions[internal] = info.column
        joined = LateralViewJoin(columns, expressions=expressions, alias=source.alias)
        attach(joined, kept, function)
        return joined

    # Conditions.

    def filter(
        self, operator: Operator, condition: Expression, scope: Scope | None = None
    ) -> Operator:
        """A Filter for a condition, over ``operator``."""
        scope = scope or Scope(self.sql, operator.columns)
        # NOT (a OR b) falls apart only once it is resolved
        predicate = tuple(
            each for part in conjuncts(condition) for each in conjuncts(scope.resolve(part))
        )
        found = Filter(list(operator.columns), predicate=predicate)
        attach(found, operator)
        return found

    def where(
        self,
        operator: Operator,
        condition: Expression,
        sources: dict[str, Operator],
        path: str,
        nested: bool,
        scope: Scope | None = None,
    ) -> Operator:
        """A WHERE or HAVING: subqueries become joins, the rest a Filter."""
        if not subquery_predicates(condition):
            return self.filter(operator, condition, scope)
        outer = scope.columns if scope else operator.columns
        rest, join = split(self.sql, condition, outer, 1, nested, self._inner_columns(condition))
        operator = joins.join_subquery(self, operator, join, sources, path, scope)
        if join.after is not None:
            rest.append(join.after)
        for_rest: Expression | None = None
        for part in rest:
            for_rest = part if for_rest is None else Call("and", (for_rest, part))
        if for_rest is None:
            return operator
        if scope is not None:
            scope = replace(scope, columns=operator.columns)
        return self.filter(operator, for_rest, scope)

    def _inner_columns(self, condition: Expression) -> dict[str, Sequence[ColumnInfo]]:
        """The columns of the tables that the subquery of a condition reads."""
        found: dict[str, Sequence[ColumnInfo]] = {}
        for call in subquery_predicates(condition):
            query = getattr(call.arguments[-1], "query", None)
            if isinstance(query, Block):
                for factor in _factors(query.source):
                    if isinstance(factor, TableSource):
                        table = self.catalog.table(factor.name)
                        if table is not None:
                            found[factor.alias] = _table_columns(table, factor.alias)
        return found


def _holds_join(source: Source | None) -> bool:
    while isinstance(source, LateralView):
        source = source.source
    return isinstance(source, JoinSource)


def _factors(source: Source | None) -> list[TableSource | SubquerySource]:
    if source is None:
        return []
    if isinstance(source, JoinSource):
        return _factors(source.left) + _factors(source.right)
    if isinstance(source, LateralView):
        return _factors(source.source)
    return [source]


def _visible(operator: Operator) -> list[ColumnInfo]:
    return [info for info in operator.columns if not info.hidden]


def _width(call: Call) -> int:
    return {"posexplode": 2}.get(call.name, max(1, len(call.arguments) - 1))


def _same_group(first: str, second: str) -> bool:
    """UNION takes types of one group: numbers, texts, or the same."""
    groups = [
        next((at for at, group in enumerate(_GROUPS) if kind.partition("(")[0] in group), kind)
        for kind in (first, second)
    ]
    return groups[0] == groups[1] or bool({first, second} & {"unknown", "void"})


def _function_columns(function: str, count: int) -> list[str]:
    """What a table function calls its columns itself."""
    if function == "explode":
        return ["col"] if count == 1 else ["key", "value"]
    if function == "posexplode":
        return ["pos", "val"][:count]
    return [f"c{at}" if function == "json_tuple" else f"col{at}" for at in range(count)]


def _table_columns(table: Table, alias: str) -> list[ColumnInfo]:
    found = [ColumnInfo(column.name, alias, column.name, column.type) for column in table.columns]
    found += [
        ColumnInfo(column.name, alias, column.name, column.type, partition=True)
        for column in table.partition_columns
    ]
    found += [
        ColumnInfo(name, alias, name, kind, partition=True, hidden=True) for name, kind in _VIRTUAL
    ]
    return found
