"""Translates conditions; a part that is left out lets more rows through, never fewer."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from airflow_hive_opt.worker.translation.expressions import Expressions, in_query
from airflow_hive_opt.worker.translation.lenient import leniently
from airflow_hive_opt.worker.translation.nodes import only
from airflow_hive_opt.worker.translation.protocols import Subqueries
from airflow_hive_opt.worker.translation.typed import Typed, alike
from airflow_hive_opt.worker.unanswered import NotUnderstood


class Conditions:
    """Translates conjuncts for one query.

    With ``monotone``, what is not understood is left out: each row that fulfils the statement's
    condition also fulfils the translated one.
    """

    def __init__(self, to: Expressions, subqueries: Subqueries, monotone: bool) -> None:
        self._to = to
        self._subqueries = subqueries
        self._monotone = monotone

    def of(self, node: exp.Expr | None) -> list[str]:
        """Translates the conjuncts of WHERE, ON or HAVING."""
        if node is None:
            return []
        if not self._monotone:
            return [self._exact(node)]
        found = self._weakened(node)
        return [] if found is None else [found]

    def _exact(self, node: exp.Expr) -> str:
        found = self._to.condition(node)
        self._count(node)
        return found

    def _weakened(self, node: exp.Expr) -> str | None:
        """The condition or a weaker one; ``None`` for one that is always true."""
        work = self._to.work
        inner = node.unnest()
        if isinstance(inner, (exp.And, exp.Or)):
            before = work.restricting
            parts = [self._weakened(part) for part in inner.flatten(unnest=False)]
            if isinstance(inner, exp.And):
                return _joined("AND", parts)
            if None in parts:
                work.restricting = before
                return None
            return _joined("OR", parts)
        try:
            with work.attempt():
                found = self._subquery(inner) or self._to.condition(inner)
        except NotUnderstood as why:
            try:
                with work.attempt():
                    found = leniently(self._to, inner)
            except NotUnderstood:
                work.leave_out(why)
                return None
            work.leave_out(why, weaker=True)
        self._count(inner)
        return found

    def _subquery(self, node: exp.Expr) -> str | None:
        """A condition that more rows of its subquery can only make true; ``None`` for others."""
        scope = self._to.scope
        if isinstance(node, exp.Exists):
            only(node, "this")
            return f"EXISTS ({self._subqueries.query(node.this, scope, monotone=True).sql()})"
        if not isinstance(node, exp.In) or node.args.get("query") is None:
            return None
        only(node, "this", "query")
        left = node.this.unnest()
        if not isinstance(left, exp.Tuple):
            query = self._subqueries.single_column(node.args["query"], scope, monotone=True)
            return in_query(self._to.operand(node.this), query)
        query = self._subqueries.query(node.args["query"], scope, monotone=True)
        values = [self._to.operand(part) for part in left.expressions]
        if len(values) != len(query.names):
            raise NotUnderstood("IN with a tuple whose length differs from its query's")
        pairs = []
        for at, value in enumerate(values):
            (mine, theirs), _ = alike([value, Typed(f"q.c{at}", query.type_of(at))])
            pairs.append(f"{mine} = {theirs}")
        return f"EXISTS (SELECT 1 FROM ({query.sql()}) AS q WHERE {' AND '.join(pairs)})"

    def _count(self, node: exp.Expr) -> None:
        """Counts a condition, except equalities of columns and ``IS NOT NULL``."""
        bare = node.unnest()
        if isinstance(bare, exp.EQ):
            sides = bare.this.unnest(), bare.expression.unnest()
            says_more = not all(isinstance(side, exp.Column) for side in sides)
        else:
            negated = bare.this.unnest() if isinstance(bare, exp.Not) else None
            says_more = not isinstance(negated, exp.Is)
        self._to.work.restricting += says_more


def _joined(word: str, parts: Iterable[str | None]) -> str | None:
    found = [part for part in parts if part is not None]
    return f"({f' {word} '.join(found)})" if found else None
