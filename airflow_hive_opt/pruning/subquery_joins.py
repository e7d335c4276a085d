"""The joins that are equivalent to subqueries in WHERE."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import (
    compared_with,
    conditions_of,
    conjuncts,
    is_null_rejecting,
    qualified,
    to_condition,
)
from airflow_hive_opt.pruning.output_columns import relation_columns
from airflow_hive_opt.pruning.query import (
    MOST_JOINS,
    ColumnRef,
    Condition,
    JoinKind,
    JoinStep,
    OpaqueRelation,
    QueryBlock,
    Relation,
    SubqueryRelation,
)
from airflow_hive_opt.pruning.relations import Relations
from airflow_hive_opt.pruning.scope import Scope
from airflow_hive_opt.pruning.subqueries import (
    SubqueryJoin,
    plain_subquery,
    query_in,
    scalar_subqueries,
    subquery_join,
    values_for,
)
from airflow_hive_opt.statement.errors import TooComplex
from airflow_hive_opt.statement.parse import span_of


class SubqueryJoins:
    """Makes joins of the subqueries in WHERE; blocks of others are appended to ``nested``."""

    def __init__(self, sql: str, relations: Relations, nested: list[QueryBlock]) -> None:
        self._sql = sql
        self._relations = relations
        self._nested = nested

    def of(
        self, where: exp.Expr | None, scope: Scope, taken: set[str]
    ) -> tuple[tuple[JoinStep, ...], frozenset[int]]:
        """The joins that are equivalent to subqueries in WHERE, and the ids of these subqueries.

        ``taken`` are all aliases of the block, also those that a semi join hides.
        """
        steps: list[JoinStep] = []
        replaced: set[int] = set()
        for part in conjuncts(where):
            if len(steps) > MOST_JOINS:
                raise TooComplex
            found = subquery_join(part)
            if found is None:
                joined = self._scalar_joins(part, scope)
                steps += joined
                if joined:
                    replaced.update(map(id, scalar_subqueries(part)))
                continue
            step = self._semi_join(found, scope, taken)
            if step:
                steps.append(step)
                taken = taken | {step.right.alias}
                replaced.add(id(found.node))
        return tuple(steps), frozenset(replaced)

    def _semi_join(self, found: SubqueryJoin, scope: Scope, taken: set[str]) -> JoinStep | None:
        on: tuple[Condition, ...] = ()
        plain = None if found.scalar else plain_subquery(found.query)
        alias = self._relations.alias(plain.factor) if plain else ""
        if (
            plain
            and alias not in taken | scope.relations.keys()
            and len(plain.columns) >= len(found.operands)
        ):
            right = self._relations.relation(plain.factor, scope, self._nested, joined=False)
            both = {**scope.relations, right.alias: right}
            inner = replace(scope, relations=both, nearest=frozenset({right.alias}))
            refs = [_own(column, right, inner) for column in plain.columns]
            if relation_columns(right) is not None:
                on = conditions_of(plain.where, self._sql, inner)
        elif found.operands:
            alias, query = self._relations.new_alias(), found.query
            names = tuple(f"c{number}" for number, _ in enumerate(found.operands))
            relation = self._relations.query(alias, query, scope, self._nested, names)
            if relation is None:
                return JoinStep(JoinKind.LEFT_SEMI, OpaqueRelation(alias), ())
            if found.scalar:
                relation = _single_row(relation)
            right, refs = relation, [ColumnRef(alias, name) for name in names]
        else:
            return None
        on += tuple(
            compared_with(operand, found.comparison, ref, self._sql, scope)
            for operand, ref in zip(found.operands, refs)
            if ref is not None
        )
        return JoinStep(found.kind, right, on)

    def _scalar_joins(self, part: exp.Expr, scope: Scope) -> list[JoinStep]:
        """The joins with the scalar subqueries of a condition that is never true of their NULLs."""
        nodes = scalar_subqueries(part)
        spans = [span_of(node) for node in nodes]
        if not nodes or None in spans or not is_null_rejecting(values_for(part, nodes).unnest()):
            return []
        rights: list[Relation] = []
        for node in nodes:
            alias = self._relations.new_alias()
            found = self._relations.query(alias, query_in(node), scope, self._nested, (alias,))
            rights.append(OpaqueRelation(alias) if found is None else _single_row(found))
        columns = [exp.column(found.alias, found.alias) for found in rights]
        inside = replace(scope, relations={**scope.relations, **{r.alias: r for r in rights}})
        replaced = values_for(part, nodes, columns)
        values = {span: ColumnRef(r.alias, r.alias) for span, r in zip(spans, rights) if span}
        text, pieces = qualified(part, self._sql, scope, values)
        condition = to_condition(replaced, self._sql, inside)
        condition = replace(condition, sql=text, pieces=pieces)
        *others, last = rights
        steps = [JoinStep(JoinKind.LEFT_SEMI, right, ()) for right in others]
        return [*steps, JoinStep(JoinKind.LEFT_SEMI, last, (condition,))]


def _single_row(relation: SubqueryRelation) -> SubqueryRelation:
    """The relation of a scalar subquery, into which no condition moves, as below LIMIT."""
    branches = tuple(replace(branch, limited=True) for branch in relation.branches)
    return replace(relation, branches=branches, single_row=True)


def _own(column: exp.Column, right: Relation, scope: Scope) -> ColumnRef | None:
    """The column, if it is certainly of the subquery's own relation; otherwise ``None``."""
    if relation_columns(right) is None and column.table.lower() != right.alias:
        return None
    ref, itself = scope.resolve(column)
    return ref if ref is not None and itself and ref.alias == right.alias else None
