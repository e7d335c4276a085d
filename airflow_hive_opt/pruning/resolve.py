"""Resolves names: makes query blocks of a syntax tree, with a relation for every column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import conditions_of, equality
from airflow_hive_opt.pruning.output_columns import UNKNOWN, columns_of, joined, sole
from airflow_hive_opt.pruning.projections import group_by, projections, window_keys
from airflow_hive_opt.pruning.query import (
    MOST_JOINS,
    ColumnRef,
    Condition,
    JoinKind,
    JoinStep,
    OpaqueRelation,
    Projection,
    QueryBlock,
    Relation,
    Statement,
)
from airflow_hive_opt.pruning.relations import Relations
from airflow_hive_opt.pruning.scope import Scope, by_alias
from airflow_hive_opt.pruning.subqueries import union_branches
from airflow_hive_opt.pruning.subquery_joins import SubqueryJoins
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.errors import TooComplex
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import error_at
from airflow_hive_opt.statement.zip_strict import zip_strict

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


def resolve(sql: str, tree: exp.Expr, catalog: Catalog) -> Statement:
    """Resolves the statement ``sql``, whose syntax tree is ``tree``.

    Raises :class:`PlanError` for unknown tables and columns and for ambiguous names.
    """
    kind, target, query = _form(tree)
    if query is None:
        return Statement(None, target, ())
    resolver = _Resolver(sql, tree, catalog)
    blocks = tuple(resolver.outermost(tree, query))
    passed_through = tuple(resolver.relations.passed_through(query))
    return Statement(kind, target, blocks, passed_through, max(1, len(union_branches(query))))


def _form(tree: exp.Expr) -> tuple[str | None, str | None, exp.Expr | None]:
    """The statement's kind, its target table and its query."""
    if isinstance(tree, exp.Query):
        return "SELECT", None, tree
    if not isinstance(tree, (exp.Insert, exp.Create)):
        return None, None, None
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    name = None
    if isinstance(target, exp.Table):
        name = ".".join(part.name for part in target.parts).lower()
    query = tree.args.get("expression")
    if not isinstance(query, exp.Query):
        return None, name, None
    if isinstance(tree, exp.Insert):
        return ("INSERT OVERWRITE" if tree.args.get("overwrite") else "INSERT INTO"), name, query
    if tree.args.get("kind") == "TABLE":
        return "CREATE TABLE AS", name, query
    return None, name, None


class _Resolver:
    """Resolves the blocks of one statement."""

    def __init__(self, sql: str, tree: exp.Expr, catalog: Catalog) -> None:
        self._sql = sql
        self.relations = Relations(sql, tree, catalog, self._block, self._queries, resolve)

    def outermost(self, tree: exp.Expr, query: exp.Expr) -> Iterator[QueryBlock]:
        """The blocks of the query, of its CTEs and of the subqueries in its expressions."""
        yield from self._queries(query, None)
        if tree is not query:
            yield from self._cte_bodies(tree)

    def _queries(self, query: exp.Expr, outer: Scope | None) -> Iterator[QueryBlock]:
        if isinstance(query, exp.SetOperation):
            yield from self._queries(query.this, outer)
            yield from self._queries(query.expression, outer)
        elif isinstance(query, exp.Subquery):
            yield from self._queries(query.this, outer)
        elif isinstance(query, exp.Select):
            nested: list[QueryBlock] = []
            block = self._block(query, outer, nested)
            if block is not None:
                yield block
            yield from nested
        yield from self._cte_bodies(query)

    def _cte_bodies(self, node: exp.Expr) -> Iterator[QueryBlock]:
        """The blocks of CTEs that are in no relation; the last CTE first, as it may read others."""
        ctes = node.args["with_"].expressions if node.args.get("with_") else ()
        for cte in reversed(ctes):
            if not self.relations.holds(cte):
                yield from self._queries(cte.this, None)

    def _block(
        self, select: exp.Select, outer: Scope | None, nested: list[QueryBlock]
    ) -> QueryBlock | None:
        """Resolves one SELECT; returns ``None`` if it has no FROM, or PIVOT or UNPIVOT in it.

        Blocks in its expressions and set operations are appended to ``nested``.
        """
        check_budget()
        from_ = select.args.get("from_")
        if from_ is None or from_.this is None:
            for expression in _expressions(select):
                for subquery in _outermost_queries(expression):
                    nested.extend(self._queries(subquery, outer))
            return None
        # the parser attaches the joins of FROM a JOIN b SELECT ... to the first table
        first_joins = from_.this.args.get("joins") if isinstance(from_.this, exp.Table) else None
        joins: list[exp.Join] = [*(first_joins or ()), *(select.args.get("joins") or ())]
        lateral_nodes: list[exp.Expr] = select.args.get("laterals") or []
        factors = [from_.this, *(join.this for join in joins)]
        if len(joins) > MOST_JOINS:
            raise TooComplex
        if self.relations.is_pivoted(select):
            self._pivoted(select, factors, outer, nested)
            return None
        relations = [
            self.relations.relation(factor, outer, nested, joined=number == 0)
            for number, factor in enumerate(factors)
        ]
        laterals = tuple(OpaqueRelation(self.relations.alias(node)) for node in lateral_nodes)
        named = zip_strict((*relations, *laterals), (*factors, *lateral_nodes))
        scope = Scope(
            self._sql,
            by_alias(self._sql, named),
            outer,
            lenient=any(join.method == "NATURAL" for join in joins),
        )
        steps, scope = self._join_steps(relations, joins, scope)
        scope = replace(scope, output=scope.output + (UNKNOWN,) * len(laterals))
        where = select.args.get("where")
        listed = frozenset(item.alias.lower() for item in select.expressions if item.alias)
        select_scope = replace(scope, aliases=listed)
        inner = [query for part in _expressions(select) for query in _outermost_queries(part)]
        semi_joins: tuple[JoinStep, ...] = ()
        replaced: frozenset[int] = frozenset()
        if where and inner:
            subqueries = SubqueryJoins(self._sql, self.relations, nested)
            taken = {found.alias for found in relations}
            semi_joins, replaced = subqueries.of(where.this, scope, taken)
        block = QueryBlock(
            first=relations[0],
            joins=steps + semi_joins,
            lateral=laterals,
            where=conditions_of(where.this if where else None, self._sql, scope),
            group_by=group_by(select, select_scope),
            projections=projections(select, select_scope),
            windows=window_keys(select, select_scope),
            distinct=bool(select.args.get("distinct")),
            limited=any(select.args.get(name) for name in ("limit", "offset", "fetch")),
        )
        for query in inner:
            if id(query) not in replaced:
                nested.extend(self._queries(query, scope))
        return block

    def _pivoted(
        self,
        select: exp.Select,
        factors: list[exp.Expr],
        outer: Scope | None,
        nested: list[QueryBlock],
    ) -> None:
        """Appends the blocks inside a SELECT whose FROM has PIVOT or UNPIVOT.

        The SELECT itself is not analyzed: PIVOT replaces the columns of all relations in FROM.
        """
        alias = self.relations.new_alias()
        scope = Scope(self._sql, {alias: OpaqueRelation(alias)}, outer)
        for part in (*factors, *_expressions(select)):
            for query in _outermost_queries(part):
                nested.extend(self._queries(query, scope))

    def _join_steps(
        self, relations: list[Relation], joins: list[exp.Join], scope: Scope
    ) -> tuple[tuple[JoinStep, ...], Scope]:
        """The joins in order, and the scope after them.

        An ON condition can read the relations to its left and its own. Only the ON condition of a
        semi or anti join can read that join's right side.
        """
        visible = {relations[0].alias: relations[0]}
        output, merged = columns_of(relations[0]), frozenset[str]()
        steps = []
        gone = set()
        for join, right in zip_strict(joins, relations[1:]):
            on_scope = replace(
                scope,
                relations={**visible, right.alias: right},
                output=output + columns_of(right),
                merged=merged,
            )
            kind = _join_kind(join, self._sql)
            on = conditions_of(join.args.get("on"), self._sql, on_scope)
            names = [name.name.lower() for name in join.args.get("using") or ()]
            steps.append(JoinStep(kind, right, on + _using(output, right, names)))
            output, merged = joined(output, right, kind, names), merged.union(names)
            if kind in (JoinKind.LEFT_SEMI, JoinKind.LEFT_ANTI):
                gone.add(right.alias)
            else:
                visible[right.alias] = right
        left = {alias: found for alias, found in scope.relations.items() if alias not in gone}
        return tuple(steps), replace(scope, relations=left, output=output, merged=merged)


def _using(
    left: Sequence[Projection], right: Relation, names: Sequence[str]
) -> tuple[Condition, ...]:
    own = columns_of(right)
    conditions = []
    for name in names:
        mine = sole(left, name)
        certain = own == (UNKNOWN,) or sole(own, name) is not None
        if mine is not None and mine.column is not None and certain:
            conditions.append(equality(mine.column, ColumnRef(right.alias, name)))
    return tuple(conditions)


def _join_kind(join: exp.Join, sql: str) -> JoinKind:
    if join.kind == "OUTER" and not join.side:  # Spark parses OUTER as the table's alias
        raise error_at(sql, join, "OUTER JOIN must be LEFT, RIGHT or FULL")
    if join.kind in ("SEMI", "ANTI"):
        return _JOIN_KINDS[join.kind]
    return _JOIN_KINDS.get(join.side, JoinKind.FULL_OUTER)


def _expressions(select: exp.Select) -> Iterator[exp.Expr]:
    """The expressions of a block that may contain subqueries outside FROM."""
    yield from select.expressions
    for name in ("where", "having", "group", "order", "qualify"):
        if select.args.get(name) is not None:
            yield select.args[name]
    for join in select.args.get("joins") or ():
        if join.args.get("on") is not None:
            yield join.args["on"]


def _outermost_queries(node: exp.Expr) -> Iterator[exp.Expr]:
    return (found for found in nodes(node, stop=(exp.Query,)) if isinstance(found, exp.Query))
