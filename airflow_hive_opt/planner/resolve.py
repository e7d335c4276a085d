"""Syntax tree to query blocks: every table looked up, every column given its relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.planner.catalog import Catalog, Table
from airflow_hive_opt.planner.conditions import (
    conjuncts,
    is_deterministic,
    to_condition,
    using_condition,
)
from airflow_hive_opt.planner.parse import Span, error_at, identifier_span, span_of
from airflow_hive_opt.planner.projections import group_by, outside_subqueries, projections
from airflow_hive_opt.planner.query import (
    ColumnRef,
    Condition,
    JoinKind,
    JoinStep,
    OpaqueRelation,
    QueryBlock,
    Relation,
    Statement,
    SubqueryRelation,
    TableRelation,
)
from airflow_hive_opt.planner.scope import (
    HIDDEN_COLUMNS,
    UNNAMED,
    Scope,
    by_alias,
)

_JOIN_KINDS = {
    "": JoinKind.INNER,
    "INNER": JoinKind.INNER,
    "CROSS": JoinKind.INNER,
    "LEFT": JoinKind.LEFT_OUTER,
    "RIGHT": JoinKind.RIGHT_OUTER,
    "FULL": JoinKind.FULL_OUTER,
    "SEMI": JoinKind.LEFT_SEMI,
    "ANTI": JoinKind.LEFT_ANTI,
}
# What may stand on a table reference that is a plain scan of the whole table.
_PLAIN_TABLE = frozenset({"this", "db", "alias"})


def resolve(sql: str, tree: exp.Expr, catalog: Catalog) -> Statement:
    """The statement that ``tree``, the parse of ``sql``, stands for.

    Raises :class:`PlanError` for unknown tables and columns and for ambiguous names.
    """
    kind, target, query = _form(tree)
    if query is None:
        return Statement(None, target, ())
    resolver = _Resolver(sql, tree, catalog)
    blocks = tuple(resolver.outermost(tree, query))
    return Statement(kind, target, blocks, tuple(resolver.passed_through(query)))


def _form(tree: exp.Expr) -> tuple[str | None, str | None, exp.Expr | None]:
    """The statement's kind, its target table and its query."""
    if isinstance(tree, exp.Query):
        return "SELECT", None, tree
    if not isinstance(tree, exp.Insert | exp.Create):
        return None, None, None
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    name = exp.table_name(target).lower() if isinstance(target, exp.Table) else None
    query = tree.args.get("expression")
    if not isinstance(query, exp.Query):
        return None, name, None
    if isinstance(tree, exp.Insert):
        return ("INSERT OVERWRITE" if tree.args.get("overwrite") else "INSERT INTO"), name, query
    if tree.args.get("kind") == "TABLE":
        return "CREATE TABLE AS", name, query
    return None, name, None


class _Resolver:
    """Walks one statement; holds what every block of it needs."""

    def __init__(self, sql: str, tree: exp.Expr, catalog: Catalog) -> None:
        self._sql = sql
        self._catalog = catalog
        self._planned: set[int] = set()
        self._numbered = 0
        # Spark resolves db.table.column only while the table keeps its name.
        self._named_with_database = {
            part.name.lower()
            for column in tree.find_all(exp.Column)
            if column.args.get("db")
            for part in column.parts[:-1]
        }
        self._hidden_columns_read = any(
            column.name.lower() in HIDDEN_COLUMNS or column.table.lower() in HIDDEN_COLUMNS
            for column in tree.find_all(exp.Column)
        )

    def outermost(self, tree: exp.Expr, query: exp.Expr) -> Iterator[QueryBlock]:
        """The blocks of the query, of its CTEs and of subqueries in its expressions."""
        names = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
        yield from self._queries(query, names, None)
        if tree is not query:
            yield from self._cte_bodies(tree, names)

    def _queries(
        self, query: exp.Expr, ctes: frozenset[str], outer: Scope | None
    ) -> Iterator[QueryBlock]:
        yield from self._cte_bodies(query, ctes)
        if isinstance(query, exp.SetOperation):
            yield from self._queries(query.this, ctes, outer)
            yield from self._queries(query.expression, ctes, outer)
        elif isinstance(query, exp.Subquery):
            yield from self._queries(query.this, ctes, outer)
        elif isinstance(query, exp.Select):
            nested: list[QueryBlock] = []
            block = self._block(query, ctes, outer, nested)
            if block is not None:
                yield block
            yield from nested

    def _cte_bodies(self, node: exp.Expr, ctes: frozenset[str]) -> Iterator[QueryBlock]:
        for cte in node.args["with_"].expressions if node.args.get("with_") else ():
            yield from self._queries(cte.this, ctes, None)

    def _block(
        self,
        select: exp.Select,
        ctes: frozenset[str],
        outer: Scope | None,
        nested: list[QueryBlock],
    ) -> QueryBlock | None:
        """One SELECT with FROM; blocks in its expressions and set operations go to ``nested``."""
        from_ = select.args.get("from_")
        if from_ is None or from_.this is None:
            for expression in _expressions(select):
                for subquery in _outermost_queries(expression):
                    nested.extend(self._queries(subquery, ctes, outer))
            return None
        # FROM a JOIN b SELECT ... hangs its joins on the first table
        first_joins = from_.this.args.get("joins") if isinstance(from_.this, exp.Table) else None
        joins: list[exp.Join] = [*(first_joins or ()), *(select.args.get("joins") or ())]
        lateral_nodes: list[exp.Expr] = select.args.get("laterals") or []
        factors = [from_.this, *(join.this for join in joins)]
        relations = [
            self._relation(factor, ctes, outer, nested, joined=number == 0)
            for number, factor in enumerate(factors)
        ]
        laterals = tuple(OpaqueRelation(self._alias(node)) for node in lateral_nodes)
        named = zip((*relations, *laterals), (*factors, *lateral_nodes), strict=True)
        scope = Scope(
            self._sql,
            by_alias(self._sql, named),
            outer,
            frozenset(name.name.lower() for join in joins for name in join.args.get("using") or ()),
            lenient=any(join.method == "NATURAL" for join in joins),
        )
        steps, scope = self._join_steps(relations, joins, scope)
        where = select.args.get("where")
        listed = frozenset(item.alias.lower() for item in select.expressions if item.alias)
        select_scope = replace(scope, aliases=listed)
        block = QueryBlock(
            first=relations[0],
            joins=steps,
            lateral=laterals,
            where=self._conditions(where.this if where else None, scope),
            group_by=group_by(select, select_scope),
            projections=projections(select, select_scope),
            windowed=outside_subqueries(select, exp.Window) or bool(select.args.get("qualify")),
            limited=any(select.args.get(name) for name in ("limit", "offset", "fetch")),
        )
        for expression in _expressions(select):
            for subquery in _outermost_queries(expression):
                nested.extend(self._queries(subquery, ctes, scope))
        return block

    def _join_steps(
        self, relations: list[Relation], joins: list[exp.Join], scope: Scope
    ) -> tuple[tuple[JoinStep, ...], Scope]:
        """The joins in order, and the scope that is left after them.

        An ON sees what stands to its left and its own table; what a semi join adds is seen by
        no one else.
        """
        visible = {relations[0].alias: relations[0]}
        steps = []
        gone = set()
        for join, right in zip(joins, relations[1:], strict=True):
            on_scope = replace(scope, relations={**visible, right.alias: right})
            kind = _join_kind(join, self._sql)
            on = self._conditions(join.args.get("on"), on_scope)
            using = _using(join, right, replace(scope, relations=visible))
            steps.append(JoinStep(kind, right, on + using))
            if kind in (JoinKind.LEFT_SEMI, JoinKind.LEFT_ANTI):
                gone.add(right.alias)
            else:
                visible[right.alias] = right
        left = {alias: found for alias, found in scope.relations.items() if alias not in gone}
        return tuple(steps), replace(scope, relations=left)

    def _conditions(self, node: exp.Expr | None, scope: Scope) -> tuple[Condition, ...]:
        return tuple(to_condition(part, self._sql, scope) for part in conjuncts(node))

    def _relation(
        self,
        factor: exp.Expr,
        ctes: frozenset[str],
        outer: Scope | None,
        nested: list[QueryBlock],
        joined: bool,
    ) -> Relation:
        """A table factor; ``joined`` says that joins on its node are the block's own."""
        alias = self._alias(factor)
        if isinstance(factor, exp.Table):
            return self._table_relation(factor, alias, ctes, joined)
        query = factor.this if isinstance(factor, exp.Subquery) else None
        plain = (
            query is not None
            and not any(factor.args.get(name) for name in ("joins", "pivots", "sample", "laterals"))
            and not _renames_columns(factor)
        )
        if plain and isinstance(query, exp.Select) and not query.args.get("with_"):
            inner: list[QueryBlock] = []
            block = self._block(query, ctes, outer, inner)
            nested.extend(inner)
            if block is not None:
                return self._subquery_relation(alias, block, query, ctes, outer, bool(inner))
        elif isinstance(query, exp.Query):
            nested.extend(self._queries(query, ctes, outer))
        return OpaqueRelation(alias)

    def _subquery_relation(
        self,
        alias: str,
        block: QueryBlock,
        query: exp.Select,
        ctes: frozenset[str],
        outer: Scope | None,
        has_subqueries: bool,
    ) -> Relation:
        span = span_of(query)
        text = span.of(self._sql) if span else ""
        reads_cte = any(table.name.lower() in ctes for table in query.find_all(exp.Table))
        positional = any(not mark.name for mark in query.find_all(exp.Placeholder))
        unstable = (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample, exp.Window)
        return SubqueryRelation(
            alias,
            block,
            text,
            self_contained=bool(text)
            and outer is None
            and not (reads_cte or positional or has_subqueries),
            stable=is_deterministic(text) and query.find(*unstable) is None,
        )

    def _alias(self, factor: exp.Expr) -> str:
        self._numbered += 1
        return factor.alias_or_name.lower() or f"{UNNAMED}{self._numbered}"

    def _table_relation(
        self, node: exp.Table, alias: str, ctes: frozenset[str], joined: bool
    ) -> Relation:
        parts = node.parts
        if len(parts) == 1 and node.name.lower() in ctes:
            return OpaqueRelation(alias)
        identifiers = [part for part in parts if isinstance(part, exp.Identifier)]
        if len(parts) > 2 or len(identifiers) < len(parts):
            return OpaqueRelation(alias)
        name = ".".join(part.name for part in parts)
        table = self._catalog.table(name)
        if table is None:
            raise error_at(self._sql, node, f"there is no table {name}")
        plain = _PLAIN_TABLE | {"joins"} if joined else _PLAIN_TABLE
        decorated = {key for key, value in node.args.items() if value} - plain
        if _renames_columns(node):
            return OpaqueRelation(alias)
        self._planned.add(id(node))
        reference = Span(
            identifier_span(identifiers[0]).start, identifier_span(identifiers[-1]).stop
        )
        qualified = not node.alias and alias in self._named_with_database
        return TableRelation(
            alias,
            table,
            reference,
            reference.of(self._sql),
            aliased=bool(node.alias),
            restrictable=not (decorated or self._hidden_columns_read or qualified),
            stable=not decorated,
        )

    def passed_through(self, query: exp.Expr) -> Iterator[tuple[str, Table]]:
        """Partitioned tables of the query that no block holds, by alias."""
        names = {cte.alias.lower() for cte in query.root().find_all(exp.CTE)}
        for node in query.find_all(exp.Table):
            if id(node) in self._planned or node.name.lower() in names:
                continue
            table = self._catalog.table(exp.table_name(node)) if len(node.parts) <= 2 else None
            if table is not None and table.partition_columns:
                yield node.alias_or_name.lower(), table


def _using(join: exp.Join, right: Relation, scope: Scope) -> tuple[Condition, ...]:
    conditions = []
    for identifier in join.args.get("using") or ():
        name = identifier.name.lower()
        left = scope.sole_owner(name)
        if left is not None:
            pair = ColumnRef(left, name), ColumnRef(right.alias, name)
            conditions.append(using_condition(*pair))
    return tuple(conditions)


def _renames_columns(factor: exp.Expr) -> bool:
    """Whether the alias has a column list, ``AS q (a, b)``."""
    alias = factor.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _join_kind(join: exp.Join, sql: str) -> JoinKind:
    if join.kind == "OUTER" and not join.side:  # Spark takes OUTER for the table's alias here
        raise error_at(sql, join, "OUTER JOIN must be LEFT, RIGHT or FULL")
    if join.kind in ("SEMI", "ANTI"):
        return _JOIN_KINDS[join.kind]
    return _JOIN_KINDS.get(join.side, JoinKind.FULL_OUTER)


def _expressions(select: exp.Select) -> Iterator[exp.Expr]:
    """Where a block may hold subqueries outside FROM."""
    yield from select.expressions
    for name in ("where", "having", "group", "order", "qualify"):
        if select.args.get(name) is not None:
            yield select.args[name]
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"]


def _outermost_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    for found in node.walk(prune=lambda part: isinstance(part, exp.Query)):
        if isinstance(found, exp.Query):
            yield found
