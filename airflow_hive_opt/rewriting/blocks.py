"""A SELECT as rewritings see it: its FROM items, its conjuncts, and what each column is.

Rewritings work on the syntax tree for its structure and on the user's text for every expression.
What is put into the text is built of pieces of it, at spans that the parser noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import conjuncts
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.parse import Span, identifier_span, span_of

_TABLE_PARTS = frozenset({"this", "db", "alias"})
_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "order"})


@dataclass(frozen=True)
class Edit:
    """``text`` in place of a span; an edit inside another one's span is that one's to apply."""

    span: Span
    text: str


def spliced(sql: str, edits: list[Edit], within: Span | None = None) -> str:
    """The text of ``within``, else all of it, with the outermost edits applied."""
    start, stop = (within.start, within.stop) if within else (0, len(sql))
    inside = [edit for edit in edits if start <= edit.span.start and edit.span.stop <= stop]
    parts = []
    for edit in sorted(inside, key=lambda each: (each.span.start, -each.span.stop)):
        if edit.span.start < start:
            continue
        parts += [sql[start : edit.span.start], edit.text]
        start = edit.span.stop
    return "".join([*parts, sql[start:stop]])


@dataclass(frozen=True)
class Factor:
    """One item of FROM. ``join`` is ``INNER`` for the first item and for a comma, too.

    ``table`` is set for a plain reference to a table, at ``reference``; ``select`` for a plain
    subquery.
    """

    alias: str
    span: Span
    join: str
    on: tuple[exp.Expr, ...]
    table: Table | None = None
    reference: Span | None = None
    named: bool = True
    select: exp.Select | None = None


@dataclass(frozen=True)
class Text:
    """The statement: its text, its tree, and where tables are looked up."""

    sql: str
    tree: exp.Expr
    catalog: Catalog

    @cached_property
    def ctes(self) -> frozenset[str]:
        """Names of WITH, which are no tables."""
        return frozenset(cte.alias.lower() for cte in self.tree.find_all(exp.CTE))

    def of(self, node: exp.Expr) -> str:
        """The node's own text. Raises :class:`Refused` where its place is not known."""
        return self.place(node).of(self.sql)

    def place(self, node: exp.Expr) -> Span:
        """The node's span. Raises :class:`Refused` where it was not noted."""
        if isinstance(node, exp.Column):
            spans = [
                identifier_span(part)
                for part in node.parts
                if isinstance(part, exp.Identifier) and "start" in part.meta
            ]
            if len(spans) == len(node.parts):
                return Span(spans[0].start, spans[-1].stop)
        span = span_of(node)
        if span is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        return span

    def fresh(self, prefix: str) -> str:
        """``prefix``, or one like it, that the statement does not have."""
        while prefix in self.sql.lower():
            prefix = f"_{prefix}"
        return prefix

    def blocks(self) -> Iterator[Block]:
        """Every SELECT, the outermost first."""
        for select in self.tree.find_all(exp.Select, bfs=True):
            yield Block(self, select)


class Block:
    """One SELECT. Raises :class:`Refused` where it has parts that no rewriting knows."""

    def __init__(self, text: Text, select: exp.Select) -> None:
        self.text = text
        self.select = select

    @cached_property
    def known(self) -> bool:
        """Whether all clauses are known to rewritings; LIMIT is the caller's to judge."""
        clauses = {name for name, value in self.select.args.items() if value}
        return clauses <= _SELECT_PARTS | {"limit", "distinct", "with_", "hint"}

    @cached_property
    def factors(self) -> Mapping[str, Factor]:
        """The items of FROM by alias, left to right."""
        from_ = self.select.args.get("from_")
        if from_ is None or from_.this is None or from_.this.args.get("joins"):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        found = [self._factor(from_.this, "INNER", None)]
        for join in self.select.args.get("joins") or ():
            if join.args.get("using") or join.method or join.kind in ("SEMI", "ANTI"):
                raise Refused(Refusal.FORM_NOT_KNOWN)
            found.append(self._factor(join.this, join.side or "INNER", join.args.get("on")))
        by_alias = {factor.alias: factor for factor in found}
        if len(by_alias) < len(found):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        return by_alias

    @cached_property
    def inner_only(self) -> bool:
        """Whether no join of the block is an outer one."""
        return all(factor.join == "INNER" for factor in self.factors.values())

    @cached_property
    def shows_all(self) -> bool:
        """Whether a ``*`` would show columns that are added; the one of ``count(*)`` does not."""
        return any(
            isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count)
            for part in self.select.walk(
                prune=lambda node: isinstance(node, exp.Query) and node is not self.select
            )
        )

    @cached_property
    def where(self) -> tuple[exp.Expr, ...]:
        """The conjuncts of WHERE."""
        where = self.select.args.get("where")
        return tuple(conjuncts(where.this if where else None))

    @cached_property
    def certain(self) -> tuple[exp.Expr, ...]:
        """Conjuncts that hold for every row of the join: WHERE's and those of inner ONs.

        None of the latter where a RIGHT or FULL join could bring rows that did not pass them.
        """
        factors = self.factors.values()
        if any(factor.join in ("RIGHT", "FULL") for factor in factors):
            return self.where
        on = [part for factor in factors if factor.join == "INNER" for part in factor.on]
        return (*on, *self.where)

    def supplied_with_nulls(self, alias: str) -> bool:
        """Whether an outer join may put NULLs in place of the factor's rows."""
        joins = [factor.join for factor in self.factors.values()]
        return self.factors[alias].join == "LEFT" or any(
            each in ("RIGHT", "FULL") for each in joins
        )

    def columns(self, alias: str) -> tuple[str, ...] | None:
        """A factor's column names, ``None`` where they are not known."""
        factor = self.factors[alias]
        if factor.table is not None:
            return tuple(column.name for column in factor.table.all_columns)
        if factor.select is None:
            return None
        names = []
        for item in factor.select.expressions:
            if item.is_star or not item.alias_or_name:
                return None
            names.append(item.alias_or_name.lower())
        return tuple(names)

    def owner(self, column: exp.Column) -> ColumnRef | None:
        """Which factor's column it is; ``None`` for one of a query around, or not known."""
        name, qualifier = column.name.lower(), column.table.lower()
        if column.args.get("db") or isinstance(column.this, exp.Star):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        if qualifier:
            return ColumnRef(qualifier, name) if qualifier in self.factors else None
        owners = [alias for alias in self.factors if name in (self.columns(alias) or ())]
        if len(owners) > 1 or any(self.columns(alias) is None for alias in self.factors):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        return ColumnRef(owners[0], name) if owners else None

    def owners(self, node: exp.Expr) -> set[ColumnRef | None]:
        """What the columns of an expression belong to."""
        return {self.owner(column) for column in node.find_all(exp.Column)}

    def aliases(self, node: exp.Expr) -> set[str | None]:
        """The factors that an expression reads, ``None`` among them for a query around."""
        return {None if ref is None else ref.alias for ref in self.owners(node)}

    def equated(self, conjunct: exp.Expr) -> tuple[ColumnRef, ColumnRef] | None:
        """The two columns of the block that ``a = b`` compares as they are."""
        bare = conjunct.unnest()
        if not isinstance(bare, exp.EQ):
            return None
        sides = bare.this.unnest(), bare.expression.unnest()
        if not all(isinstance(side, exp.Column) for side in sides):
            return None
        left, right = map(self.owner, sides)
        return None if left is None or right is None else (left, right)

    def type_of(self, ref: ColumnRef) -> str | None:
        """A column's type where it is a table's, through plain subqueries too."""
        factor = self.factors.get(ref.alias)
        if factor is None:
            return None
        if factor.table is not None:
            types = {column.name: column.type for column in factor.table.all_columns}
            return types.get(ref.name)
        if factor.select is not None:
            inner = Block(self.text, factor.select)
            for item in factor.select.expressions:
                bare = item.unalias()
                if item.alias_or_name.lower() == ref.name and isinstance(bare, exp.Column):
                    source = inner.owner(bare)
                    return None if source is None else inner.type_of(source)
        return None

    def _factor(self, node: exp.Expr, join: str, on: exp.Expr | None) -> Factor:
        if "SEMI" in join or "ANTI" in join:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        alias = node.alias_or_name.lower()
        parts = tuple(conjuncts(on))
        span = self.text.place(node)
        named = node.args.get("alias")
        if not alias or (named is not None and named.args.get("columns")):
            raise Refused(Refusal.FORM_NOT_KNOWN)
        if isinstance(node, exp.Table):
            return self._table(node, Factor(alias, span, join, parts, named=bool(node.alias)))
        plain = isinstance(node, exp.Subquery) and not any(
            value for name, value in node.args.items() if name not in ("this", "alias")
        )
        select = node.this if plain and isinstance(node.this, exp.Select) else None
        return Factor(alias, span, join, parts, select=select)

    def _table(self, node: exp.Table, factor: Factor) -> Factor:
        identifiers = [part for part in node.parts if isinstance(part, exp.Identifier)]
        decorated = {name for name, value in node.args.items() if value} - _TABLE_PARTS
        unknown = len(identifiers) != len(node.parts) or len(identifiers) > 2 or decorated
        if unknown or (len(identifiers) == 1 and node.name.lower() in self.text.ctes):
            return factor
        table = self.text.catalog.table(".".join(part.name for part in identifiers))
        spans = [identifier_span(part) for part in identifiers]
        reference = Span(spans[0].start, spans[-1].stop)
        return Factor(
            factor.alias, factor.span, factor.join, factor.on, table, reference, factor.named
        )
