"""FROM with its joins."""

from __future__ import annotations

from sqlglot import exp

from airflow_hive_opt.worker.translation.conditions import Conditions
from airflow_hive_opt.worker.translation.expressions import Expressions
from airflow_hive_opt.worker.translation.nodes import only
from airflow_hive_opt.worker.translation.protocols import Subqueries
from airflow_hive_opt.worker.translation.relations import LeftOut, Relation, Scope
from airflow_hive_opt.worker.unanswered import NotUnderstood

_INNER, _LEFT, _RIGHT, _FULL, _SEMI, _ANTI = "INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"


class From:
    """The relations of a query, joined from left to right.

    With ``monotone``, a relation is left out if that only adds rows, and so are conditions of inner
    and semi joins. ``visible`` are the relations whose columns the query can read.
    """

    def __init__(self, subqueries: Subqueries, node: exp.Select, monotone: bool) -> None:
        self.visible: list[Relation] = []
        self._subqueries = subqueries
        self._why: NotUnderstood | None = None
        self._others: list[str] = []
        self._items: list[tuple[str, Relation, list[str]]] = []
        joins = node.args.get("joins") or []
        kinds = [_kind(join) for join in joins]
        commas = any(not join.args.get("on") for join in joins)
        if commas and not {_INNER}.issuperset(kinds):
            raise NotUnderstood("a comma beside an outer join in FROM")
        # a row too many on the other side of such a join replaces a row with NULLs
        self._monotone = monotone and not {_RIGHT, _FULL}.intersection(kinds)
        # and without the left side there would be no row with NULLs
        self._all_inner = {_INNER, _SEMI}.issuperset(kinds)
        from_ = node.args.get("from_")
        if from_ is None:
            raise NotUnderstood("a query without FROM")
        only(from_, "this")
        self._add(_INNER, from_.this, None)
        for kind, join in zip(kinds, joins, strict=True):
            self._add(kind, join.this, join.args.get("on"))
        aliases = [relation.alias for relation in self.visible if relation.alias]
        if len(set(aliases)) < len(aliases):
            raise NotUnderstood("two tables with one alias in FROM")
        if not self._items:
            raise self._why or NotUnderstood("a query without tables")

    @property
    def conditions(self) -> list[str]:
        """Conditions of joins with relations that are left out."""
        return [*self._items[0][2], *self._others]

    def sql(self) -> str:
        """FROM in DuckDB."""
        (_, first, _), *others = self._items
        text = f"FROM {first.sql()}"
        for kind, relation, on in others:
            text += f" {kind} JOIN {relation.sql()} ON {' AND '.join(on) or 'true'}"
        return text

    def _add(self, kind: str, node: exp.Expr, on: exp.Expr | None) -> None:
        work = self._subqueries.work
        relation: Relation | None = None
        try:
            with work.attempt():
                if not self._items and kind != _INNER:
                    raise NotUnderstood("a join with a table that is not read")
                relation = self._subqueries.relation(node, self._may_grow(kind))
                if relation.why is not None:
                    raise relation.why
                item = kind, relation, self._conditions(kind, relation, on)
        except NotUnderstood as why:
            if not self._monotone or (kind == _INNER and not self._all_inner):
                raise
            work.leave_out(why)
            self._why = self._why or why
            if kind not in (_SEMI, _ANTI):
                names = relation.names if relation is not None else None
                left_out = LeftOut(_alias(node), why, names)
                if kind == _INNER:
                    self._others += self._conditions(kind, left_out, on)
                self.visible.append(left_out)
            return
        self._items.append(item)
        if kind not in (_SEMI, _ANTI):
            self.visible.append(relation)

    def _may_grow(self, kind: str) -> bool:
        return self._monotone and kind in (_INNER, _SEMI)

    def _conditions(self, kind: str, relation: Relation, on: exp.Expr | None) -> list[str]:
        scope = Scope([*self.visible, relation])
        to = Expressions(self._subqueries.work, scope, self._subqueries)
        return Conditions(to, self._subqueries, self._may_grow(kind)).of(on)


def _alias(node: exp.Expr) -> str:
    return (node.alias or node.name).lower()


def _kind(join: exp.Join) -> str:
    only(join, "this", "side", "kind", "on")
    side, kind = str(join.side).upper(), str(join.kind).upper()
    if kind in (_SEMI, _ANTI) and side in ("", _LEFT):
        return kind
    if side in (_LEFT, _RIGHT, _FULL) and kind in ("", "OUTER"):
        return side
    if not side and kind in ("", "INNER", "CROSS"):
        return _INNER
    raise NotUnderstood(f"a join of the kind {f'{side} {kind}'.strip()}")
