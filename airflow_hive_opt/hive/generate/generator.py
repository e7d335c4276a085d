"""Builds Hive's operator graph of query blocks, before any rule (SemanticAnalyzer.genPlan)."""

from __future__ import annotations

from dataclasses import replace

from airflow_hive_opt.hive.generate import bodies, joins
from airflow_hive_opt.hive.generate.generation import (
    BlockContext,
    Generation,
    factors,
    table_columns,
)
from airflow_hive_opt.hive.generate.lateral_views import lateral_views
from airflow_hive_opt.hive.generate.names import NUMBERS, error
from airflow_hive_opt.hive.graph import operator_graph as ops
from airflow_hive_opt.hive.parser import syntax
from airflow_hive_opt.hive.parser.statement_parser import Statement, parse_hive
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.errors import PlanError, position
from airflow_hive_opt.statement.settings import Settings
from airflow_hive_opt.statement.zip_strict import zip_strict

_GROUPS = (NUMBERS, ("string", "varchar", "char"))


def generate(
    sql: str, statement: Statement, catalog: Catalog, settings: Settings
) -> tuple[list[ops.TableScan], list[ops.FileSink]]:
    """Returns the roots and leaves of a statement's graph; raises :class:`PlanError`."""
    generator = _Generator(sql, catalog, settings)
    generator.query(statement.query, "", sink=True)
    return generator.generation.scans, generator.generation.sinks


class _Generator:
    """Builds the graph of one statement, block by block."""

    def __init__(self, sql: str, catalog: Catalog, settings: Settings) -> None:
        self.generation = Generation(
            sql, catalog, settings, lambda query, path: self.query(query, path, nested=True)
        )
        self._views: list[str] = []
        self._view_at: int | None = None  # in a view's text: the position of its name

    def query(
        self, query: syntax.Query, path: str, sink: bool = False, nested: bool = False
    ) -> ops.Operator:
        """Returns the last operator of a query. With ``sink``, every body gets a FileSink."""
        if isinstance(query, syntax.Union):
            return self._union(query, path, nested)
        return self._block(query, path, sink, nested)

    def _union(self, union: syntax.Union, path: str, nested: bool) -> ops.Operator:
        left = self.query(union.left, f"{path}-subquery1", nested=nested)
        right = self.query(union.right, f"{path}-subquery2", nested=nested)
        first, second = left.visible, right.visible
        if len(first) != len(second):
            message = f"the sides of the UNION have {len(first)} and {len(second)} columns"
            raise error(self.generation.sql, 40000, message)
        for mine, other in zip_strict(first, second):
            if not _same_group(mine.type, other.type):
                message = (
                    f"column {mine.name} of the UNION is {mine.type} on one side and "
                    f"{other.type} on the other: cast one"
                )
                raise error(self.generation.sql, 40000, message)
        inputs: list[ops.Operator] = []
        for branch in (left, right):
            # A union directly below becomes part of this union.
            if isinstance(branch, ops.Union):
                inputs += branch.parents
                for parent in branch.parents:
                    parent.children.remove(branch)
            else:
                inputs.append(branch)
        return ops.attach(ops.Union([replace(info, table=None) for info in first]), *inputs)

    def _block(self, block: syntax.Block, path: str, sink: bool, nested: bool) -> ops.Operator:
        named: dict[str, syntax.TableSource | syntax.SubquerySource] = {}
        for factor in factors(block.source):
            if factor.alias in named:
                message = f"two tables here are called {factor.alias}: give one an alias"
                raise error(self.generation.sql, 10008, message, factor.at)
            named[factor.alias] = factor
        # Hive's rules visit the scans in this order: subqueries, then tables.
        made = {
            factor.alias: self._factor(factor, path, block.views)
            for factor in sorted(named.values(), key=lambda each: self._is_table(each, block.views))
        }
        sources = {alias: made[alias] for alias in named}
        if block.source is None:
            sources[""] = self._scan(ops.TableScan([], alias="_dummy_table"))
        source = block.source
        while isinstance(source, syntax.LateralView):
            source = source.source
        if isinstance(source, syntax.JoinSource):
            found = joins.generate(self.generation, source, block.bodies, sources)
        else:
            found = next(iter(sources.values()))
        found = lateral_views(self.generation.sql, block.source, found)
        context = BlockContext(self.generation, sources, path, sink, nested)
        return bodies.generate(context, block, found)

    def _is_table(
        self,
        factor: syntax.TableSource | syntax.SubquerySource,
        views: tuple[tuple[str, syntax.Query], ...],
    ) -> bool:
        if isinstance(factor, syntax.SubquerySource) or factor.name in dict(views):
            return False
        table = self.generation.catalog.table(factor.name)
        return table is None or table.view is None

    def _factor(
        self,
        factor: syntax.TableSource | syntax.SubquerySource,
        path: str,
        views: tuple[tuple[str, syntax.Query], ...],
    ) -> ops.Operator:
        inner = f"{path}:{factor.alias}" if path else factor.alias
        if isinstance(factor, syntax.SubquerySource):
            query = syntax.with_views(factor.query, views)
            return self._renamed(self.query(query, inner), factor.alias)
        named = dict(views)
        if factor.name in named and factor.name not in self._views:
            self._views.append(factor.name)
            found = self.query(syntax.with_views(named[factor.name], views), inner)
            self._views.remove(factor.name)
            return self._renamed(found, factor.alias)
        table = self.generation.catalog.table(factor.name)
        if table is None:
            raise error(self.generation.sql, 10001, f"there is no table {factor.name}", factor.at)
        if table.view is not None:
            return self._view(table, table.view, factor, inner)
        scan = ops.TableScan(
            table_columns(table, factor.alias),
            alias=factor.alias,
            path=inner,
            table=table,
            at=self._at(factor),
            sampled=bool(factor.sample),
        )
        return self._scan(scan)

    def _view(self, table: Table, text: str, factor: syntax.TableSource, path: str) -> ops.Operator:
        """Makes the query of a view and gives its columns the view's names.

        Errors inside the view have positions in the view's own text.
        """
        if not text:
            message = (
                f"the catalog does not have the query of the view {table.name}: add it to the "
                'view\'s entry, as in "view": "SELECT ..."'
            )
            raise PlanError("INPUT", message, *position(self.generation.sql, factor.at))
        outer, self.generation.sql = self.generation.sql, text
        outer_at, self._view_at = self._view_at, self._at(factor)
        found = self._renamed(self.query(parse_hive(text).query, path), factor.alias)
        self.generation.sql, self._view_at = outer, outer_at
        names = [column.name for column in table.columns]
        if names:
            found.columns = [
                replace(info, name=name) for info, name in zip_strict(found.columns, names)
            ]
        return found

    def _at(self, factor: syntax.TableSource) -> int:
        """The position in the statement of a table's name, or of the view that reads it."""
        return factor.at if self._view_at is None else self._view_at

    def _scan(self, scan: ops.TableScan) -> ops.TableScan:
        self.generation.scans.append(scan)
        return scan

    def _renamed(self, operator: ops.Operator, alias: str) -> ops.Operator:
        """Gives the columns of a subquery's result the alias of the subquery."""
        operator.columns = [replace(info, table=alias) for info in operator.visible]
        return operator


def _same_group(first: str, second: str) -> bool:
    """Tells whether UNION accepts both types: both numbers, both texts, or the same type.

    An unknown or void type matches every type.
    """
    groups = [
        next((at for at, group in enumerate(_GROUPS) if kind.partition("(")[0] in group), kind)
        for kind in (first, second)
    ]
    return groups[0] == groups[1] or bool({first, second} & {"unknown", "void"})
