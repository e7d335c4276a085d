"""Translates queries: SELECT, UNION, and the names that their FROM reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import AGGREGATES
from airflow_hive_opt.worker.translation.conditions import Conditions
from airflow_hive_opt.worker.translation.expressions import Expressions
from airflow_hive_opt.worker.translation.from_clause import From
from airflow_hive_opt.worker.translation.functions import FUNCTIONS
from airflow_hive_opt.worker.translation.nodes import not_understood, only
from airflow_hive_opt.worker.translation.relations import (
    Query,
    QueryRelation,
    Relation,
    Scope,
    TableRelation,
)
from airflow_hive_opt.worker.translation.typed import Typed, alike
from airflow_hive_opt.worker.translation.work import Notes, Work
from airflow_hive_opt.worker.types import SqlType
from airflow_hive_opt.worker.unanswered import NotUnderstood

# The order of rows without LIMIT has no effect.
_ORDER = ("order", "sort", "distribute", "cluster")
_Projection = exp.Expr | tuple[Relation, str]


@dataclass(frozen=True)
class Queries:
    """Translates queries; ``ctes`` are those of WITH clauses around them, by name."""

    work: Work
    ctes: Mapping[str, exp.CTE]

    def query(self, node: exp.Expr, outer: Scope | None, monotone: bool) -> Query:
        """A query of any form, with ``outer`` for columns of the query around it.

        With ``monotone``, it may return more rows than the statement's, and may return a row
        another number of times.
        """
        while isinstance(node, exp.Subquery):
            only(node, "this", "with_")
            inner = self._with(node)
            if inner is not self:
                return inner.query(node.this, outer, monotone)
            node = node.this
        inner = self._with(node)
        if isinstance(node, exp.Select):
            return SelectQuery(inner, node, outer, monotone)
        if type(node) is exp.Union:
            only(node, "this", "expression", "distinct", "with_")
            sides = [inner.query(side, outer, monotone) for side in (node.this, node.expression)]
            return UnionQuery(self.work, sides, bool(node.args.get("distinct")), monotone)
        raise not_understood(node, self.work.sql)

    def single_column(self, node: exp.Expr, outer: Scope | None, monotone: bool) -> Query:
        """A query with one output column."""
        found = self.query(node, outer, monotone)
        if len(found.names) != 1:
            raise NotUnderstood("a subquery of several columns")
        return found

    def relation(self, node: exp.Expr, monotone: bool) -> Relation:
        """An item of FROM."""
        alias = node.args.get("alias")
        name = alias.name.lower() if alias is not None else ""
        listed = tuple(column.name.lower() for column in alias.columns) if alias else ()
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            query = self.query(node.this, None, monotone)
            return QueryRelation(self.work, query, name, listed)
        if not isinstance(node, exp.Table):
            raise not_understood(node, self.work.sql)
        only(node, "this", "db", "catalog", "alias")
        if not all(isinstance(part, exp.Identifier) for part in node.parts):
            raise not_understood(node, self.work.sql)
        cte = self.ctes.get(node.name.lower()) if len(node.parts) == 1 else None
        if cte is not None:
            columns = tuple(c.name.lower() for c in cte.args["alias"].columns)
            query = self._before(cte).query(cte.this, None, monotone)
            return QueryRelation(self.work, query, name or node.name.lower(), listed or columns)
        if listed:
            raise NotUnderstood("an alias with a list of columns")
        source = self.work.source(".".join(part.name.lower() for part in node.parts))
        return TableRelation(self.work, source, name or node.name.lower())

    def _with(self, node: exp.Expr) -> Queries:
        with_ = node.args.get("with_")
        if with_ is None:
            return self
        only(with_, "expressions")
        found = {cte.alias.lower(): cte for cte in with_.expressions}
        # which of two of one name is meant depends on a setting
        if len(found) < len(with_.expressions) or found.keys() & self.ctes.keys():
            raise NotUnderstood("two common table expressions with one name")
        return Queries(self.work, {**self.ctes, **found})

    def _before(self, cte: exp.CTE) -> Queries:
        """The CTEs that this CTE can read: the ones before it."""
        names = list(self.ctes)
        before = names[: names.index(cte.alias.lower())]
        return Queries(self.work, {name: self.ctes[name] for name in before})


class SelectQuery:
    """One SELECT. Its output columns are translated when they are asked for."""

    def __init__(
        self, subqueries: Queries, node: exp.Select, outer: Scope | None, monotone: bool
    ) -> None:
        only(
            node,
            *("expressions", "from_", "joins", "where", "group", "having", "distinct", "hint"),
            *("with_", *_ORDER),
        )
        self._work = subqueries.work
        parts = (*node.expressions, *filter(None, [node.args.get("having")]))
        aggregates = any(_own_aggregate(part) for part in parts)
        self._one_row = aggregates and node.args.get("group") is None
        # a row too many changes an aggregate
        rows_monotone = monotone and not aggregates
        self._from = From(subqueries, node, rows_monotone)
        visible = self._from.visible
        self._to = Expressions(self._work, Scope(visible), subqueries)
        below = Expressions(self._work, Scope(visible, outer), subqueries)
        where = node.args.get("where")
        self._where = Conditions(below, subqueries, rows_monotone).of(where and where.this)
        self._group = self._group_by(node.args.get("group"))
        self._projections = list(self._expanded(node, visible))
        self._having = self._having_of(node, subqueries, monotone)
        self._distinct = node.args.get("distinct") is not None
        if self._distinct:
            only(node.args["distinct"])
        self._columns: dict[int, Typed] = {}
        self._notes: list[Notes] = []
        if self._distinct:
            for at in range(len(self._projections)):
                _ask(self, at, monotone, self._work)

    @property
    def names(self) -> Sequence[str]:
        """See :class:`Query`."""
        return tuple(name for name, _ in self._projections)

    def type_of(self, at: int) -> SqlType:
        """See :class:`Query`."""
        if at not in self._columns:
            projection = self._projections[at][1]
            with self._work.attempt() as notes:
                found = (
                    self._to.value(projection)
                    if isinstance(projection, exp.Expr)
                    else projection[0].column(projection[1])
                )
            self._columns[at] = found
            self._notes.append(notes)
        return self._columns[at].type

    def sql(self) -> str:
        """See :class:`Query`."""
        for notes in self._notes:
            self._work.note(notes)
        listed = [f"{self._columns[at].sql} AS c{at}" for at in sorted(self._columns)]
        if self._one_row or not listed:
            listed.append("count(*) AS one" if self._one_row else "1 AS one")
        where = [*self._from.conditions, *self._where]
        parts = [
            f"SELECT {'DISTINCT ' if self._distinct else ''}{', '.join(listed)}",
            self._from.sql(),
            f"WHERE {' AND '.join(where)}" if where else "",
            f"GROUP BY {', '.join(self._group)}" if self._group else "",
            f"HAVING {' AND '.join(self._having)}" if self._having else "",
        ]
        return " ".join(filter(None, parts))

    def _group_by(self, node: exp.Expr | None) -> list[str]:
        if node is None:
            return []
        only(node, "expressions")
        keys = [self._to.value(part) for part in node.expressions]
        if not keys or any(key.number is not None for key in keys):
            raise NotUnderstood("GROUP BY by position")
        return [key.sql for key in keys]

    def _having_of(self, node: exp.Select, subqueries: Queries, monotone: bool) -> list[str]:
        having = node.args.get("having")
        if having is None:
            return []
        aliases = {part.alias.lower() for part in node.expressions if isinstance(part, exp.Alias)}
        bare = {c.name.lower() for c in having.find_all(exp.Column) if not c.table}
        if not self._group or aliases & bare:
            raise NotUnderstood("HAVING without GROUP BY or with names of the select list")
        return Conditions(self._to, subqueries, monotone).of(having.this)

    def _expanded(
        self, node: exp.Select, visible: Sequence[Relation]
    ) -> Iterator[tuple[str, _Projection]]:
        """The output columns: each name with its expression, or with the relation that has it."""
        for part in node.expressions:
            star = part if isinstance(part, exp.Star) else part.this
            if isinstance(star, exp.Star) and isinstance(part, (exp.Star, exp.Column)):
                only(star)
                wanted = part.table.lower() if isinstance(part, exp.Column) else ""
                relations = [each for each in visible if wanted in ("", each.alias)]
                if not relations or any(each.names is None for each in relations):
                    raise NotUnderstood("* of a table whose columns are not known")
                for each in relations:
                    yield from ((name, (each, name)) for name in each.names or ())
            elif isinstance(part, exp.Alias):
                yield part.alias.lower(), part.this
            else:
                yield (part.name.lower() if isinstance(part, exp.Column) else ""), part


class UnionQuery:
    """UNION and UNION ALL; the columns are matched by position."""

    def __init__(self, work: Work, sides: Sequence[Query], distinct: bool, monotone: bool) -> None:
        self._work = work
        self._sides = sides
        self._distinct = distinct
        self._types: dict[int, SqlType] = {}
        if len({len(side.names) for side in sides}) > 1:
            raise NotUnderstood("a UNION of queries with different numbers of columns")
        if distinct:
            for at in range(len(self.names)):
                _ask(self, at, monotone, work)

    @property
    def names(self) -> Sequence[str]:
        """See :class:`Query`."""
        return self._sides[0].names

    def type_of(self, at: int) -> SqlType:
        """See :class:`Query`."""
        if at not in self._types:
            with self._work.attempt():
                columns = [Typed("", side.type_of(at)) for side in self._sides]
                type_ = alike(columns)[1]
                if type_.is_decimal and any(column.type != type_ for column in columns):
                    raise NotUnderstood("a UNION of columns with different types")
                self._types[at] = type_
        return self._types[at]

    def sql(self) -> str:
        """See :class:`Query`."""
        listed = [f"CAST(c{at} AS {self._types[at].duckdb}) AS c{at}" for at in sorted(self._types)]
        columns = ", ".join(listed) or "1 AS one"
        word = " UNION " if self._distinct else " UNION ALL "
        return word.join(f"(SELECT {columns} FROM ({side.sql()}))" for side in self._sides)


def _ask(query: Query, at: int, monotone: bool, work: Work) -> None:
    """Translates a column that DISTINCT compares, or leaves it out if that loses no key.

    Without the column, DISTINCT returns fewer rows, but the same values of the other columns.
    """
    try:
        query.type_of(at)
    except NotUnderstood as why:
        if not monotone:
            raise
        work.leave_out(why)


def _own_aggregate(node: exp.Expr) -> bool:
    """Whether the expression has an aggregate of its own query."""
    walked = list(node.walk(bfs=False, prune=lambda part: isinstance(part, exp.Query)))
    for part in walked:
        if isinstance(part, exp.Anonymous) and part.name.lower() not in FUNCTIONS:
            raise NotUnderstood(f"{part.name}, which may be an aggregate function")
    return any(isinstance(part, AGGREGATES) for part in walked)
