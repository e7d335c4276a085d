"""WHERE and HAVING: subqueries become joins, the other conditions a Filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_hive_opt.hive.generate import join_tree as trees
from airflow_hive_opt.hive.generate.generation import BlockContext, factors, filtered, table_columns
from airflow_hive_opt.hive.generate.join_tree import JoinContext
from airflow_hive_opt.hive.generate.joins import join_sources
from airflow_hive_opt.hive.generate.names import Scope, error
from airflow_hive_opt.hive.generate.subquery_joins import SubqueryJoin, split, subquery_predicates
from airflow_hive_opt.hive.graph.operator_graph import ColumnInfo, Operator
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.catalog import Catalog


def where(
    context: BlockContext,
    operator: Operator,
    condition: syntax.Expression,
    scope: Scope | None = None,
) -> Operator:
    """Makes a WHERE or, with the scope of its group-by, a HAVING.

    Raises :class:`PlanError` for a condition that Hive rejects.
    """
    sql, catalog = context.generation.sql, context.generation.catalog
    predicates = subquery_predicates(condition)
    if not predicates:
        return filtered(sql, operator, condition, scope)
    if context.nested:
        raise error(sql, 40000, "a subquery can't stand inside a subquery", predicates[0].at)
    outer = scope.columns if scope else operator.columns
    tables = _inner_columns(catalog, condition)
    rest, join = split(sql, condition, outer, tables)
    operator = _joined(context, operator, join, scope)
    if join.after is not None:
        rest.append(join.after)
    if not rest:
        return operator
    if scope is not None:
        scope = replace(scope, columns=operator.columns)
    return filtered(sql, operator, syntax.joined("and", rest), scope)


def _joined(
    context: BlockContext, operator: Operator, join: SubqueryJoin, scope: Scope | None
) -> Operator:
    """Joins the rows of a query with the subquery of its WHERE or HAVING."""
    generation = context.generation
    if scope is not None:  # HAVING: the result of the group-by is one relation
        operator.columns = [
            replace(info, table=info.table or "gby_sq1", name=info.name or info.internal)
            for info in scope.columns
        ]
    query = _subquery(context, join.query, join.alias)
    extra = sum(info.name.startswith("sq_corr_") for info in query.columns)
    if len(query.columns) - extra > 1 and _is_in(join):
        raise error(generation.sql, 40000, "the subquery of IN may give one column only")
    columns = list(operator.columns)
    aliases = list(dict.fromkeys(info.table or "" for info in columns))

    def join_with(right: Operator, tree: trees.JoinTree) -> Operator:
        given = {**context.sources, tree.right_aliases[0]: right}
        if tree.base[0]:
            given[tree.base[0]] = operator
        return join_sources(generation, tree, given, operator)

    if join.nulls is not None:
        alias = join.nulls_alias
        is_zero = syntax.Call("=", (syntax.Name((alias, "c")), syntax.Constant("0", "bigint")))
        nulls = filtered(generation.sql, _subquery(context, join.nulls, alias), is_zero)
        no_columns = JoinContext(generation.sql, {})
        tree = trees.subquery_join_tree("LEFT SEMI", aliases, alias, None, no_columns)
        operator = join_with(nulls, tree)
    by_table = _by_table(operator.columns) | {join.alias: query.columns}
    held = {info.internal: info for info in columns}

    def spelled_out(key: syntax.Expression) -> syntax.Expression | None:
        """The name of the column that holds a group-by key."""
        if scope is None or key not in scope.known:
            return None
        info = held[scope.known[key].name]
        return syntax.Name((info.table or "gby_sq1", info.name or info.internal))

    on = syntax.rewritten(join.on, spelled_out)
    names = JoinContext(generation.sql, by_table)
    return join_with(query, trees.subquery_join_tree(join.kind, aliases, join.alias, on, names))


def _subquery(context: BlockContext, query: syntax.Query, alias: str) -> Operator:
    """Makes a subquery whose columns only the join's own conditions may name."""
    path = f"{context.path}:{alias}" if context.path else alias
    found = context.generation.subquery(query, path)
    found.columns = [replace(info, table=alias, hidden=True) for info in found.visible]
    return found


def _is_in(join: SubqueryJoin) -> bool:
    first = join.on
    while isinstance(first, syntax.Call) and first.name == "and":
        first = first.arguments[0]
    if not isinstance(first, syntax.Call):
        return False
    right = first.arguments[1]
    return isinstance(right, syntax.Name) and not right.parts[-1].startswith("sq_corr_")


def _by_table(columns: list[ColumnInfo]) -> dict[str, list[ColumnInfo]]:
    found: dict[str, list[ColumnInfo]] = {}
    for info in columns:
        found.setdefault(info.table or "", []).append(info)
    return found


def _inner_columns(
    catalog: Catalog, condition: syntax.Expression
) -> dict[str, Sequence[ColumnInfo]]:
    """Returns the columns of the tables that the subqueries of a condition read, by alias."""
    found: dict[str, Sequence[ColumnInfo]] = {}
    for call in subquery_predicates(condition):
        query = getattr(call.arguments[-1], "query", None)
        if isinstance(query, syntax.Block):
            for factor in factors(query.source):
                if isinstance(factor, syntax.TableSource):
                    table = catalog.table(factor.name)
                    if table is not None:
                        found[factor.alias] = table_columns(table, factor.alias)
    return found
