"""WHERE and HAVING: subqueries become joins, the other conditions a Filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_hive_opt.hive.generate import join_tree as trees
from airflow_hive_opt.hive.generate.generation import (
    Generation,
    factors,
    filtered,
    table_columns,
)
from airflow_hive_opt.hive.generate.join_tree import JoinContext
from airflow_hive_opt.hive.generate.joins import join_sources
from airflow_hive_opt.hive.generate.names import Scope, error
from airflow_hive_opt.hive.generate.subquery_joins import (
    SubqueryJoin,
    split,
    subquery_predicates,
)
from airflow_hive_opt.hive.graph.operator_graph import ColumnInfo, Operator
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.statement.catalog import Catalog


def where(
    generation: Generation,
    operator: Operator,
    condition: syntax.Expression,
    sources: dict[str, Operator],
    path: str,
    nested: bool,
    scope: Scope | None = None,
) -> Operator:
    """Makes a WHERE or HAVING: subqueries become joins, the other conditions a Filter.

    Raises :class:`PlanError` for a condition that Hive rejects.
    """
    if not subquery_predicates(condition):
        return filtered(generation.sql, operator, condition, scope)
    outer = scope.columns if scope else operator.columns
    rest, join = split(
        generation.sql, condition, outer, 1, nested, _inner_columns(generation.catalog, condition)
    )
    operator = _joined(generation, operator, join, sources, path, scope)
    if join.after is not None:
        rest.append(join.after)
    for_rest: syntax.Expression | None = None
    for part in rest:
        for_rest = part if for_rest is None else syntax.Call("and", (for_rest, part))
    if for_rest is None:
        return operator
    if scope is not None:
        scope = replace(scope, columns=operator.columns)
    return filtered(generation.sql, operator, for_rest, scope)


def _joined(
    generation: Generation,
    operator: Operator,
    join: SubqueryJoin,
    sources: dict[str, Operator],
    path: str,
    scope: Scope | None,
) -> Operator:
    """Joins the rows of a query with the subquery of its WHERE or HAVING."""
    if scope is not None:  # HAVING: the result of the group-by is one relation
        operator.columns = [
            replace(info, table=info.table or "gby_sq1", name=info.name or info.internal)
            for info in scope.columns
        ]
    inner = f"{path}:{join.alias}" if path else join.alias
    query = generation.subquery(join.query, inner)
    width = len([info for info in query.columns if not info.hidden])
    extra = sum(1 for info in query.columns if info.name.startswith("sq_corr_"))
    if width - extra > 1 and _is_in(join):
        raise error(generation.sql, 40000, "the subquery of IN may give one column only")
    query.columns = [
        replace(info, table=join.alias, hidden=True) for info in query.columns if not info.hidden
    ]
    columns = list(operator.columns)
    aliases = list(dict.fromkeys(info.table or "" for info in columns))
    if join.nulls is not None:
        nulls_path = f"{path}:{join.nulls_alias}" if path else join.nulls_alias
        nulls = generation.subquery(join.nulls, nulls_path)
        nulls.columns = [
            replace(info, table=join.nulls_alias, hidden=True) for info in nulls.columns
        ]
        zero = syntax.Constant("0", "bigint")
        count = filtered(
            generation.sql, nulls, syntax.Call("=", (_name(join.nulls_alias, "c"), zero))
        )
        tree = trees.subquery_join_tree(
            "LEFT SEMI", aliases, join.nulls_alias, None, JoinContext(generation.sql, {})
        )
        given = {**sources, join.nulls_alias: count}
        if tree.base[0]:
            given[tree.base[0]] = operator
        operator = join_sources(generation, tree, given, operator, path)
    context = JoinContext(generation.sql, _by_table(operator.columns) | {join.alias: query.columns})
    known = {} if scope is None else dict(scope.known)
    tree = trees.subquery_join_tree(
        join.kind, aliases, join.alias, _spelled_out(join.on, known, columns), context
    )
    given = {**sources, join.alias: query}
    if tree.base[0]:
        given[tree.base[0]] = operator
    return join_sources(generation, tree, given, operator, path)


def _is_in(join: SubqueryJoin) -> bool:
    first = join.on
    while isinstance(first, syntax.Call) and first.name == "and":
        first = first.arguments[0]
    if not isinstance(first, syntax.Call):
        return False
    right = first.arguments[1]
    return isinstance(right, syntax.Name) and not right.parts[-1].startswith("sq_corr_")


def _spelled_out(
    on: syntax.Expression, known: dict[syntax.Expression, syntax.Column], columns: list[ColumnInfo]
) -> syntax.Expression:
    """Replaces group-by keys in a condition with the names of the columns that hold them."""
    if on in known:
        internal = known[on].name
        info = next(info for info in columns if info.internal == internal)
        return _name(info.table or "gby_sq1", info.name or info.internal)
    if isinstance(on, syntax.Call):
        parts = tuple(_spelled_out(part, known, columns) for part in on.arguments)
        return replace(on, arguments=parts)
    return on


def _name(*parts: str) -> syntax.Expression:
    return syntax.Name(parts)


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
