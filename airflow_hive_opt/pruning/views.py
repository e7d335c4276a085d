"""Finds the output columns of a view that are unchanged partition columns of a table.

A condition on these columns can restrict the statement's reference to the view. Spark pushes the
condition down to the table's scan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from airflow_hive_opt.pruning.operators import build
from airflow_hive_opt.pruning.query import Statement
from airflow_hive_opt.pruning.rules.skeletons import outputs
from airflow_hive_opt.statement.catalog import Catalog, Table, Underlying, ViewDefinition
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.parse import parse, why_unsupported


@dataclass(frozen=True)
class _InDatabase:
    """A catalog for a view's query: unqualified names are in the view's database."""

    catalog: Catalog
    database: str

    def table(self, name: str) -> Table | None:
        return self.catalog.table(name if "." in name else f"{self.database}.{name}")


def with_underlying(
    table: Table, catalog: Catalog, resolve: Callable[[str, exp.Expr, Catalog], Statement]
) -> Table:
    """Sets ``underlying`` of a view if its columns show those of exactly one partitioned table.

    A table, or a view that the planner can't analyze, is returned unchanged.
    """
    definition = table.definition
    if definition is None or why_unsupported(definition.text):
        return table
    try:
        inside = _InDatabase(catalog, definition.database)
        statement = resolve(definition.text, parse(definition.text), inside)
    except (PlanError, RecursionError):
        return table
    underlying = _underlying(statement, definition, table)
    return replace(table, underlying=underlying) if underlying else table


def _underlying(statement: Statement, definition: ViewDefinition, view: Table) -> Underlying | None:
    if not statement.blocks or statement.branches != 1:
        return None
    scans = []
    for scan, found in outputs(build(statement)[0]):
        pairs = tuple(
            (column.name, found[name].column)
            for name, column in zip(definition.columns, view.columns)
            if name in found and found[name].column
        )
        if pairs:
            scans.append(Underlying(scan.relation.table.scanned, pairs))
    return scans[0] if len(scans) == 1 else None
