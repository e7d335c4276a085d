"""A SELECT for rewritings: its FROM items, its conjuncts, and the owner of each column.

Rewritings use the syntax tree for the structure, and the user's text for every expression. New text
is composed of parts of the user's text, at the spans that the parser recorded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from airflow_hive_opt.pruning.conditions import conjuncts
from airflow_hive_opt.pruning.query import ColumnRef
from airflow_hive_opt.rewriting.refusals import Refusal, Refused
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import Span, name_span, span_of

_TABLE_PARTS = frozenset({"this", "db", "alias"})
_SELECT_PARTS = frozenset({"expressions", "from_", "joins", "where", "group", "having", "order"})


@dataclass(frozen=True)
class Factor:
    """One item of FROM.

    ``join`` is also ``INNER`` for the first item and after a comma. ``table`` and its position
    ``reference`` are set for a plain reference to a table, ``select`` for a plain subquery.
    ``named`` says that the text gives a table an alias.
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
    """The statement: its text, its syntax tree, and the catalog of its tables."""

    sql: str
    tree: exp.Expr
    catalog: Catalog

    @cached_property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """The tree's nodes, breadth first, without the identifiers of columns."""
        return tuple(nodes(self.tree))

    @cached_property
    def ctes(self) -> frozenset[str]:
        """The names of CTEs, which are not tables."""
        return frozenset(node.alias.lower() for node in self.nodes if isinstance(node, exp.CTE))

    def of(self, node: exp.Expr) -> str:
        """The node's text; raises :class:`Refused` if its position is not known."""
        return self.place(node).of(self.sql)

    def place(self, node: exp.Expr) -> Span:
        """The node's span; raises :class:`Refused` if the parser did not record it."""
        span = (name_span(node) if isinstance(node, exp.Column) else None) or span_of(node)
        if span is None:
            raise Refused(Refusal.FORM_NOT_KNOWN)
        return span

    def fresh(self, prefix: str) -> str:
        """``prefix``, with underscores before it until the statement does not contain it."""
        while prefix in self.sql.lower():
            prefix = f"_{prefix}"
        return prefix

    def blocks(self) -> Iterator[Block]:
        """Every SELECT of the statement, outermost first."""
        return (Block(self, node) for node in self.nodes if isinstance(node, exp.Select))


def tables_in(node: exp.Expr) -> Counter[str]:
    """How often a part of the statement names each table, in lower case."""
    check_budget()
    tables = (found for found in nodes(node) if isinstance(found, exp.Table))
    return Counter(exp.table_name(table).lower() for table in tables)


class Block:
    """One SELECT; its members raise :class:`Refused` for parts that no rewriting supports."""

    def __init__(self, text: Text, select: exp.Select) -> None:
        self.text = text
        self.select = select

    @cached_property
    def known(self) -> bool:
        """Whether rewritings support all clauses; the caller must check LIMIT."""
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
        """Whether the block has no outer join."""
        return all(factor.join == "INNER" for factor in self.factors.values())

    @cached_property
    def shows_all(self) -> bool:
        """Whether a ``*`` would show added columns; the one in ``count(*)`` does not."""
        return any(
            isinstance(part, exp.Star) and not isinstance(part.parent, exp.Count)
            for child in self.select.iter_expressions()
            for part in nodes(child, stop=(exp.Query,))
        )

    @cached_property
    def tables(self) -> Counter[str]:
        """How often the block names each table, also in subqueries."""
        return tables_in(self.select)

    @cached_property
    def where(self) -> tuple[exp.Expr, ...]:
        """The conjuncts of WHERE."""
        where = self.select.args.get("where")
        return tuple(conjuncts(where.this if where else None))

    @cached_property
    def certain(self) -> tuple[exp.Expr, ...]:
        """Conjuncts that hold for every row of the join: those of WHERE and of inner joins' ON.

        If the block has a RIGHT or FULL join, only those of WHERE: such a join could add rows that
        did not pass the ON conditions.
        """
        factors = self.factors.values()
        if any(factor.join in ("RIGHT", "FULL") for factor in factors):
            return self.where
        on = [part for factor in factors if factor.join == "INNER" for part in factor.on]
        return (*on, *self.where)

    @cached_property
    def reading(self) -> Mapping[str | None, list[exp.Expr]]:
        """The conjuncts of :attr:`certain` by the aliases that they read; see :meth:`aliases`."""
        found: dict[str | None, list[exp.Expr]] = defaultdict(list)
        for conjunct in self.certain:
            for alias in self.aliases(conjunct):
                found[alias].append(conjunct)
        return found

    def supplied_with_nulls(self, alias: str) -> bool:
        """Whether an outer join may put NULLs in place of the rows of the item ``alias``."""
        joins = [factor.join for factor in self.factors.values()]
        return self.factors[alias].join == "LEFT" or any(
            each in ("RIGHT", "FULL") for each in joins
        )

    def columns(self, alias: str) -> tuple[str, ...] | None:
        """The column names of the item ``alias``, or ``None`` if they are not known."""
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
        """The column of a FROM item to which ``column`` refers.

        ``None`` for a column of an enclosing query or an unknown one. Raises :class:`Refused` if
        the owner is not certain.
        """
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
        """The owners of the columns of an expression, with ``None`` as :meth:`owner` returns it."""
        check_budget()
        return {self.owner(found) for found in nodes(node) if isinstance(found, exp.Column)}

    def aliases(self, node: exp.Expr) -> set[str | None]:
        """The aliases of the FROM items that a node reads; ``None`` is an enclosing query."""
        return {None if ref is None else ref.alias for ref in self.owners(node)}

    def equated(self, conjunct: exp.Expr) -> tuple[ColumnRef, ColumnRef] | None:
        """The two bare columns of the block in ``a = b``, or ``None`` for another conjunct."""
        bare = conjunct.unnest()
        if not isinstance(bare, exp.EQ):
            return None
        sides = bare.this.unnest(), bare.expression.unnest()
        if not all(isinstance(side, exp.Column) for side in sides):
            return None
        left, right = map(self.owner, sides)
        return None if left is None or right is None else (left, right)

    def type_of(self, ref: ColumnRef) -> str | None:
        """The type of a table's column, also through plain subqueries; ``None`` if not known."""
        factor = self.factors.get(ref.alias)
        if factor is None:
            return None
        if factor.table is not None:
            types = {column.name: column.type for column in factor.table.all_columns}
            return types.get(ref.name)
        if factor.select is None:
            return None
        inner = Block(self.text, factor.select)
        source = inner.source(ref.name)
        return None if source is None else inner.type_of(source)

    def source(self, name: str) -> ColumnRef | None:
        """The column of a FROM item that the SELECT returns as ``name``; ``None`` for another."""
        for item in self.select.expressions:
            bare = item.unalias()
            if item.alias_or_name.lower() == name and isinstance(bare, exp.Column):
                return self.owner(bare)
        return None

    def filters(self, alias: str) -> list[exp.Expr]:
        """The conjuncts of :attr:`certain` that read the item ``alias`` alone."""
        return [
            conjunct
            for conjunct in self.certain
            if not any(conjunct.find_all(exp.Query)) and self.aliases(conjunct) == {alias}
        ]

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
        reference = name_span(node)
        decorated = {name for name, value in node.args.items() if value} - _TABLE_PARTS
        unknown = reference is None or len(node.parts) > 2 or decorated
        if unknown or (len(node.parts) == 1 and node.name.lower() in self.text.ctes):
            return factor
        table = self.text.catalog.table(".".join(part.name for part in node.parts))
        return replace(factor, table=table, reference=reference)
