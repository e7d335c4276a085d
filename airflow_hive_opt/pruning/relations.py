"""Makes relations of the items in FROM: tables, subqueries, CTEs and other items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from airflow_hive_opt.pruning.ctes import CommonTables
from airflow_hive_opt.pruning.query import (
    OpaqueRelation,
    QueryBlock,
    Relation,
    Statement,
    SubqueryRelation,
    TableRelation,
)
from airflow_hive_opt.pruning.scope import HIDDEN_COLUMNS, UNNAMED, Scope
from airflow_hive_opt.pruning.subqueries import (
    column_list,
    has_positions,
    is_closed,
    is_stable,
    text_of,
    union_branches,
)
from airflow_hive_opt.pruning.views import with_underlying
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.nodes import nodes
from airflow_hive_opt.statement.parse import error_at, name_span, span_of
from airflow_hive_opt.statement.scan_ref import ScanRef, scan_names

# The parts that a table reference may have if it is a plain scan of the whole table.
_PLAIN_TABLE = frozenset({"this", "db", "catalog", "alias"})
_PLAIN_SUBQUERY = ("joins", "pivots", "sample", "laterals")
# References to CTEs that are resolved as queries. CTEs that read each other twice grow in number
# exponentially.
_EXPANSIONS = 200


class Relations:
    """Makes the relations of one statement.

    ``block`` resolves one SELECT, ``queries`` every block of a query; both take the enclosing
    scope. ``statement`` resolves a view's query. Blocks that are not part of a relation are
    appended to the ``nested`` list of each call.
    """

    def __init__(
        self,
        sql: str,
        tree: exp.Expr,
        catalog: Catalog,
        block: Callable[[exp.Select, Scope | None, list[QueryBlock]], QueryBlock | None],
        queries: Callable[[exp.Expr, Scope | None], Iterable[QueryBlock]],
        statement: Callable[[str, exp.Expr, Catalog], Statement],
    ) -> None:
        self._sql = sql
        self._catalog = catalog
        self._block = block
        self._queries = queries
        self._statement = statement
        every = nodes(tree)
        self._ctes = CommonTables(sql, tree, every)
        self._tree = tree
        self._table_nodes = [node for node in every if isinstance(node, exp.Table)]
        self._names = scan_names(sql, list(self._scans()))
        self._planned: set[int] = set()
        self._expanded: dict[str, set[int]] = defaultdict(set)
        self._not_expanded: set[str] = set()
        self._expansions = 0
        self._numbered = 0
        self._with_underlying: dict[str, Table] = {}
        self._pivoted: set[int] = set()
        # Spark resolves db.table.column only if the table keeps its name.
        self._named_with_database: set[str] = set()
        self._hidden_columns_read = False
        for node in every:
            if isinstance(node, exp.Pivot):
                self._pivoted.add(id(node.find_ancestor(exp.Select)))
            elif isinstance(node, exp.Column):
                if node.args.get("db"):
                    self._named_with_database.update(part.name.lower() for part in node.parts[:-1])
                if not HIDDEN_COLUMNS.isdisjoint((node.name.lower(), node.table.lower())):
                    self._hidden_columns_read = True

    def alias(self, factor: exp.Expr) -> str:
        """The alias of a FROM item, or a new internal alias if it has none."""
        return factor.alias_or_name.lower() or self.new_alias()

    def new_alias(self) -> str:
        """A new internal alias."""
        self._numbered += 1
        return f"{UNNAMED}{self._numbered}"

    def holds(self, cte: exp.CTE) -> bool:
        """Whether the CTE's blocks are part of a relation wherever the statement reads it."""
        name = cte.alias.lower()
        if self._ctes.body(name) is not cte.this or name in self._not_expanded:
            return False
        return self._expanded[name] == self._ctes.readers(name)

    def is_pivoted(self, select: exp.Select) -> bool:
        """Whether FROM has PIVOT or UNPIVOT, which change the columns of all relations in it."""
        return id(select) in self._pivoted

    def relation(
        self, factor: exp.Expr, outer: Scope | None, nested: list[QueryBlock], joined: bool
    ) -> Relation:
        """The relation of a FROM item.

        ``joined`` says that the joins attached to its node are joins of the block.
        """
        alias = self.alias(factor)
        if isinstance(factor, exp.Table):
            return self._table(factor, alias, nested, joined)
        query = factor.this if isinstance(factor, exp.Subquery) else None
        if not isinstance(query, exp.Query):
            values = isinstance(factor, exp.Values)
            return self._by_text(factor, alias) if values else OpaqueRelation(alias)
        if any(factor.args.get(name) for name in _PLAIN_SUBQUERY):
            nested.extend(self._queries(query, outer))
            return OpaqueRelation(alias)
        found = self.query(alias, query, outer, nested, column_list(factor) or ())
        return found if found is not None else self._by_text(factor, alias)

    def query(
        self,
        alias: str,
        query: exp.Expr,
        outer: Scope | None,
        nested: list[QueryBlock],
        names: tuple[str, ...] = (),
    ) -> SubqueryRelation | None:
        """A relation of a query, or ``None`` with the query's blocks added to ``nested``."""
        selects = union_branches(query)
        branches = [self._block(select, outer, nested) for select in selects]
        found = tuple(branch for branch in branches if branch is not None)
        if names and not all(_has_columns(branch, len(names)) for branch in found):
            selects = ()
        if not selects or len(found) < len(selects):
            nested.extend(found if branches else self._queries(query, outer))
            return None
        definitions, text = self._ctes.definitions(query), text_of(query, self._sql)
        movable = self._ctes.covers(query) and not has_positions(query)
        return SubqueryRelation(
            alias,
            found,
            definitions + text,
            self_contained=bool(text) and movable and (outer is None or is_closed(query)),
            stable=self._ctes.stable(query) and is_stable(text, query),
            tables=self._tables(query),
            names=names,
        )

    def passed_through(self, query: exp.Expr) -> Iterator[tuple[ScanRef, Table]]:
        """The scans of partitioned tables of the query, with these, that are in no block."""
        inside = self._table_nodes if query is self._tree else query.find_all(exp.Table)
        for node in inside:
            if id(node) in self._planned or self._ctes.knows(node.name):
                continue
            table = None if _has_dots(node) else self._catalog.table(exp.table_name(node))
            if table is not None and table.pruning_columns:
                alias, span = node.alias_or_name.lower(), name_span(node)
                at = None if span is None else (span.start, span.stop)
                name = alias if span is None else self._names[span.start]
                yield ScanRef(alias, table.name, at, name), table

    def _scans(self) -> Iterator[tuple[str, int]]:
        """The alias and the start of each reference to a table that the statement reads."""
        writes = isinstance(self._tree, (exp.Insert, exp.Create))
        target = self._tree.this.find(exp.Table) if writes and self._tree.this else None
        for node in self._table_nodes:
            span = name_span(node)
            is_cte = len(node.parts) == 1 and self._ctes.knows(node.name)
            if node is not target and span is not None and not is_cte:
                yield node.alias_or_name.lower(), span.start

    def _table(
        self, node: exp.Table, alias: str, nested: list[QueryBlock], joined: bool
    ) -> Relation:
        parts = node.parts
        reference = name_span(node)
        plain = _PLAIN_TABLE | {"joins"} if joined else _PLAIN_TABLE
        decorated = {key for key, value in node.args.items() if value} - plain
        if len(parts) == 1 and self._ctes.knows(node.name):
            unlike = decorated or column_list(node)
            return OpaqueRelation(alias) if unlike else self._cte(node, alias, nested)
        if reference is None or _has_dots(node):
            return OpaqueRelation(alias)
        name = ".".join(part.name for part in parts)
        table = self._catalog.table(name)
        if table is None:
            raise error_at(self._sql, node, f"there is no table {name}")
        if column_list(node):
            return self._by_text(node, alias)
        self._planned.add(id(node))
        qualified = not node.alias and alias in self._named_with_database
        return TableRelation(
            alias,
            self._open(table),
            reference,
            reference.of(self._sql),
            self._names[reference.start],
            aliased=bool(node.alias),
            restrictable=not (decorated or self._hidden_columns_read or qualified),
            stable=not decorated,
        )

    def _open(self, table: Table) -> Table:
        if table.name not in self._with_underlying:
            self._with_underlying[table.name] = with_underlying(
                table, self._catalog, self._statement
            )
        return self._with_underlying[table.name]

    def _cte(self, node: exp.Table, alias: str, nested: list[QueryBlock]) -> Relation:
        """A reference to a CTE: its query, resolved for this reader, otherwise its text."""
        name = node.name.lower()
        body = self._ctes.body(name)
        self._expansions += 1
        if body is not None and self._expansions <= _EXPANSIONS:
            found = self.query(alias, body, None, nested, self._ctes.listed(name))
            if found is not None:
                self._expanded[name].add(id(node))
                return replace(found, text=self._cte_text(node), stable=self._ctes.stable(node))
        self._not_expanded.add(name)
        if body is None or not self._ctes.covers(node) or has_positions(body):
            return OpaqueRelation(alias)
        text = f"({self._cte_text(node)}) AS {quote(alias)}"
        return OpaqueRelation(
            alias, text, self._ctes.columns(name), self._tables(node), self._ctes.stable(node)
        )

    def _cte_text(self, node: exp.Table) -> str:
        return f"{self._ctes.definitions(node)}SELECT * FROM {quote(node.name)}"

    def _by_text(self, factor: exp.Expr, alias: str) -> OpaqueRelation:
        """A relation of which the planner knows the text, but not the blocks."""
        span = span_of(factor)
        movable = is_closed(factor) and self._ctes.covers(factor) and not has_positions(factor)
        if span is None or alias.startswith(UNNAMED) or not movable:
            return OpaqueRelation(alias)
        text, definitions = span.of(self._sql), self._ctes.definitions(factor)
        stable = self._ctes.stable(factor) and is_stable(text, factor)
        if definitions:
            text = f"({definitions}SELECT * FROM {text}) AS {quote(alias)}"
        return OpaqueRelation(alias, text, column_list(factor), self._tables(factor), stable)

    def _tables(self, node: exp.Expr) -> tuple[Table, ...]:
        """Every table that the node's text reads, directly or through CTEs."""
        found = (self._catalog.table(name) for name in self._ctes.tables(node))
        return tuple(table for table in found if table is not None)


def _has_dots(node: exp.Table) -> bool:
    """Whether a part of the name contains a dot, so that the parts can't be told apart.

    The last part may be a path: ``delta.`/data/orders.d` ``.
    """
    *before, last = (part.name for part in node.parts)
    return any("." in name for name in before) or ("." in last and "/" not in last)


def _has_columns(branch: QueryBlock, number: int) -> bool:
    names = [projection.name for projection in branch.projections]
    return len(names) == number and "*" not in names
