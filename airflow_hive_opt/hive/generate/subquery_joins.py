"""Turns IN, NOT IN, EXISTS and NOT EXISTS of WHERE and HAVING into joins (Hive's SubQueryUtils).

``x IN (SELECT y FROM t WHERE t.a = outer.b)`` becomes a LEFT SEMI JOIN on ``x = y`` and the
correlated equality. ``NOT EXISTS`` becomes a LEFT OUTER JOIN with a filter for rows without a
match. ``NOT IN`` becomes the same join, after a join with the count of the subquery's nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from airflow_hive_opt.hive.generate.names import aggregates_in, error, windows_in
from airflow_hive_opt.hive.graph.operator_graph import ColumnInfo
from airflow_hive_opt.hive.parser import syntax


@dataclass(frozen=True)
class SubqueryJoin:
    """A subquery predicate as a join: ``query AS alias`` joined by ``kind`` on ``on``.

    ``after`` is the filter over the joined rows. ``nulls`` is the query that counts the subquery's
    nulls; it is joined first.
    """

    kind: str
    alias: str
    query: syntax.Query
    on: syntax.Expression
    after: syntax.Expression | None = None
    nulls: syntax.Query | None = None
    nulls_alias: str = ""


def subquery_predicates(where: syntax.Expression | None) -> list[syntax.Call]:
    """Returns the IN and EXISTS calls over a query, anywhere in a condition."""
    return [
        part
        for part in (syntax.walk(where) if where is not None else ())
        if isinstance(part, syntax.Call)
        and any(isinstance(each, syntax.Subquery) for each in part.arguments)
    ]


def split(
    sql: str,
    where: syntax.Expression,
    outer: Sequence[ColumnInfo],
    tables: dict[str, Sequence[ColumnInfo]],
) -> tuple[list[syntax.Expression], SubqueryJoin]:
    """Returns the other conjuncts of WHERE and the join for its one subquery.

    Raises :class:`PlanError` for forms that Hive rejects: more than one subquery, a subquery that
    is not a top-level conjunct, EXISTS without an equality with the outer query.
    """
    predicates = subquery_predicates(where)
    if len(predicates) > 1:
        raise error(sql, 40000, "only one subquery can stand in a WHERE", predicates[1].at)
    (predicate,) = predicates
    rest, negated, found = [], False, False
    for part in syntax.conjuncts(where):
        inner, is_not = part, False
        while isinstance(inner, syntax.Call) and inner.name == "not":
            inner, is_not = inner.arguments[0], not is_not
        if inner is predicate:
            negated, found = is_not, True
        else:
            rest.append(part)
    if not found or predicate.name not in ("in", "exists"):
        message = "a subquery must be IN or EXISTS and a conjunct of its own"
        raise error(sql, 40000, message, predicate.at)
    subquery = predicate.arguments[-1]
    if len(predicate.arguments) > (2 if predicate.name == "in" else 1):
        raise error(sql, 40000, "IN takes one subquery", predicate.at)
    if not isinstance(subquery, syntax.Subquery):
        raise TypeError("no subquery")
    operand = predicate.arguments[0] if predicate.name == "in" else None
    return rest, _join(sql, operand, subquery, negated, outer, tables)


def _join(
    sql: str,
    operand: syntax.Expression | None,
    subquery: syntax.Subquery,
    negated: bool,
    outer: Sequence[ColumnInfo],
    tables: dict[str, Sequence[ColumnInfo]],
) -> SubqueryJoin:
    alias = "sq_1"
    query = subquery.query
    correlations: list[tuple[syntax.Expression, syntax.Expression]] = []
    if isinstance(query, syntax.Block) and len(query.bodies) == 1:
        query, correlations = _decorrelate(sql, query, outer, tables, operand is None)
    if operand is None and not correlations:
        message = "EXISTS needs an equality between its table and the outer query's"
        raise error(sql, 10250, message, subquery.at)
    if operand is not None and isinstance(query, syntax.Block) and _is_array(query.bodies[0]):
        raise error(sql, 40000, "IN compares a value with an array of the subquery", subquery.at)

    def equal(outside: syntax.Expression, column: str) -> syntax.Expression:
        return syntax.Call("=", (_qualified(outside, outer), syntax.Name((alias, column))))

    on = [] if operand is None else [equal(operand, _first_name(query))]
    on += [equal(outside, f"sq_corr_{at}") for at, (outside, _) in enumerate(correlations)]
    if operand is None and len(correlations) > 1 and not negated and _ends_in_one(subquery, query):
        message = (
            "the last condition of EXISTS can't be one of several equalities with the outer query"
        )
        raise error(sql, 40000, message, subquery.at)
    joined = syntax.joined("and", on)
    if not negated:
        return SubqueryJoin("LEFT SEMI", alias, query, joined)
    after_name = _first_name(query) if operand is not None else "sq_corr_0"
    after = syntax.Call("isnull", (syntax.Name((alias, after_name)),))
    if operand is None:
        return SubqueryJoin("LEFT OUTER", alias, query, joined, after)
    nulls = _count_nulls(query, alias, len(correlations))
    return SubqueryJoin(
        "LEFT OUTER", alias, query, joined, after, nulls, f"{alias}_notin_nullcheck"
    )


def _is_array(body: syntax.Body) -> bool:
    first = body.items[0].expression
    return isinstance(first, syntax.Call) and first.name in ("collect_set", "collect_list")


def _ends_in_one(subquery: syntax.Subquery, decorrelated: syntax.Query) -> bool:
    """Whether the last condition that reads a column is an equality with the outer query.

    Hive then fails if there are several such equalities.
    """
    if not isinstance(subquery.query, syntax.Block) or not isinstance(decorrelated, syntax.Block):
        return False
    reading = [
        part
        for part in syntax.conjuncts(subquery.query.bodies[0].where)
        if any(isinstance(name, syntax.Name) for name in syntax.walk(part))
    ]
    return reading[-1] not in syntax.conjuncts(decorrelated.bodies[0].where)


def _qualified(expression: syntax.Expression, outer: Sequence[ColumnInfo]) -> syntax.Expression:
    """Qualifies the columns of an expression of the outer query with their tables."""

    def qualified(part: syntax.Expression) -> syntax.Expression | None:
        if not isinstance(part, syntax.Name) or len(part.parts) > 1:
            return None
        tables = [info.table for info in outer if info.name == part.parts[0]]
        known = len(tables) == 1 and tables[0]
        return syntax.Name((known, *part.parts), part.at) if known else None

    return syntax.rewritten(expression, qualified)


def _decorrelate(
    sql: str,
    block: syntax.Block,
    outer: Sequence[ColumnInfo],
    tables: dict[str, Sequence[ColumnInfo]],
    exists: bool,
) -> tuple[syntax.Block, list[tuple[syntax.Expression, syntax.Expression]]]:
    """Moves the equalities with the outer query from WHERE to the SELECT list.

    Returns the changed block and the equalities as pairs of outer and inner expression. Raises
    :class:`PlanError` for a correlation that Hive rejects.
    """
    body = block.bodies[0]
    inside = _aliases(block.source)
    correlations: list[tuple[syntax.Expression, syntax.Expression]] = []
    kept: list[syntax.Expression] = []
    for part in syntax.conjuncts(body.where):
        names = [name for name in syntax.walk(part) if isinstance(name, syntax.Name)]
        outside = [name for name in names if _is_outer(name, inside, outer, tables)]
        if not outside:
            kept.append(part)
            continue
        sides = (
            part.arguments if isinstance(part, syntax.Call) and part.name in ("=", "<=>") else ()
        )
        reads = [_reads(side, outside) for side in sides]
        if reads == ["outer", "inner"]:
            correlations.append((sides[0], sides[1]))
        elif reads == ["inner", "outer"]:
            correlations.append((sides[1], sides[0]))
        elif len(outside) == len(names):
            message = "a condition on the outer query alone can't stand in the subquery"
            raise error(sql, 10249, message, outside[0].at)
        else:
            kept.append(part)
    if correlations and any(windows_in(item.expression) for item in body.items):
        message = "a subquery with a window function can't read the outer query"
        raise error(sql, 10249, message, None)
    keys = _group_by(sql, body, [own for _, own in correlations], exists)
    items = body.items
    for at, (_, own) in enumerate(correlations):
        items = (*items, syntax.SelectItem(own, (f"sq_corr_{at}",)))
    where = syntax.joined("and", kept) if kept else None
    body = replace(body, items=items, where=where, group_by=keys)
    return replace(block, bodies=(body,)), correlations


def _group_by(
    sql: str, body: syntax.Body, correlated: list[syntax.Expression], exists: bool
) -> tuple[syntax.Expression, ...]:
    """The GROUP BY of a subquery, with the columns that are compared with the outer query.

    Hive adds them if the SELECT list has aggregates, but none that counts. To a subquery without
    GROUP BY it adds one column only.
    """
    calls = [call for item in body.items for call in aggregates_in(item.expression)]
    if not correlated or not calls or any(call.name == "count" for call in calls):
        return body.group_by
    if not body.group_by and exists:
        message = "EXISTS over an aggregate without GROUP BY is never true in Hive: add GROUP BY"
        raise error(sql, 10250, message, calls[0].at)
    if not body.group_by and len(correlated) > 1:
        return body.group_by
    return tuple(dict.fromkeys((*body.group_by, *correlated)))


def _reads(side: syntax.Expression, outside: list[syntax.Name]) -> str:
    read = [name in outside for name in syntax.walk(side) if isinstance(name, syntax.Name)]
    return "none" if not read else "outer" if all(read) else "mixed" if any(read) else "inner"


def _is_outer(
    name: syntax.Name,
    inside: set[str],
    outer: Sequence[ColumnInfo],
    tables: dict[str, Sequence[ColumnInfo]],
) -> bool:
    if name.parts[0] in inside:
        return False
    if len(name.parts) > 1 and any(info.table == name.parts[0] for info in outer):
        return True
    own = [info for columns in tables.values() for info in columns]
    return not any(info.name == name.parts[0] for info in own) and any(
        info.name == name.parts[0] for info in outer
    )


def _aliases(source: syntax.Source | None) -> set[str]:
    if source is None:
        return set()
    if isinstance(source, syntax.JoinSource):
        return _aliases(source.left) | _aliases(source.right)
    if isinstance(source, syntax.LateralView):
        return _aliases(source.source) | {source.alias}
    return {source.alias}


def _first_name(query: syntax.Query) -> str:
    while isinstance(query, syntax.Union):
        query = query.left
    item = query.bodies[0].items[0]
    if item.aliases:
        return item.aliases[0]
    if isinstance(item.expression, syntax.Name):
        return item.expression.parts[-1]
    source = query.source
    if not isinstance(item.expression, (syntax.Call, syntax.Constant)) and isinstance(
        source, syntax.SubquerySource
    ):
        return _first_name(source.query)
    return "_c0"


def _count_nulls(query: syntax.Query, alias: str, correlations: int) -> syntax.Block:
    """Makes ``SELECT count(*) AS c FROM (query) WHERE first IS NULL``.

    NOT IN is never true if the subquery has a NULL.
    """
    is_null: syntax.Expression = syntax.Call("isnull", (syntax.Name((alias, _first_name(query))),))
    for at in range(correlations):
        is_null = syntax.Call(
            "or", (is_null, syntax.Call("isnull", (syntax.Name((alias, f"sq_corr_{at}")),)))
        )
    count = syntax.SelectItem(syntax.Call("count", (syntax.Constant("1", "int"),)), ("c",))
    return syntax.Block(
        syntax.SubquerySource(query, alias), (syntax.Body((count,), where=is_null),)
    )
