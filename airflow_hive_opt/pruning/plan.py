"""Makes a plan from SQL text: parse, resolve, build, apply the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_hive_opt.pruning.decisions import Plan, ScanDecision
from airflow_hive_opt.pruning.operators import build
from airflow_hive_opt.pruning.query import Statement, TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.resolve import resolve
from airflow_hive_opt.pruning.row_level import RowLevel, as_query
from airflow_hive_opt.pruning.rules import RULES
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.errors import TooComplex
from airflow_hive_opt.statement.lake_formats import LAKE_FORMATS
from airflow_hive_opt.statement.parse import parse, why_unsupported
from airflow_hive_opt.statement.settings import Settings

__all__ = ["Plan", "passing_through", "plan"]


@dataclass(frozen=True)
class _DataColumns:
    """A catalog whose lake tables are grouped by all columns of which they have bounds.

    So keys can restrict any of these. The tables' metadata has each file's lowest and highest value
    of a data column too. Whether that skips files depends on how the rows were written.
    """

    catalog: Catalog

    def table(self, name: str) -> Table | None:
        found = self.catalog.table(name)
        if found is None:
            return None
        every = dict.fromkeys((*found.clustered_by, *found.bounded))
        return replace(found, clustered_by=tuple(every))


def passing_through(sql: str, why: str) -> Plan:
    """The plan of a statement that passes through to Spark; ``why`` is the reason."""
    return Plan(sql, None, None, (), (), passed_through=why)


def plan(sql: str, catalog: Catalog, settings: Settings | None = None) -> Plan:
    """Plans one statement.

    Raises :class:`~airflow_hive_opt.statement.errors.PlanError`, and
    :class:`~airflow_hive_opt.statement.budget.OverBudget` inside a budget.
    """
    settings = settings or Settings.of()
    catalog = _DataColumns(catalog) if settings.switches.key_predicate else catalog
    if why := why_unsupported(sql):
        return passing_through(sql, why)
    try:
        return _plan(sql, catalog, settings)
    except RecursionError:
        raise TooComplex from None


def _plan(sql: str, catalog: Catalog, settings: Settings) -> Plan:
    check_budget()
    tree = parse(sql)
    check_budget()
    row_level, query = as_query(sql, tree) or (None, tree)
    statement = resolve(sql, query, catalog)
    if statement.kind is None:
        return passing_through(sql, "the planner does not support the statement's kind or form")
    if row_level is not None and (why := _not_planned(row_level, statement)):
        return passing_through(sql, why)
    planned = Plan(
        sql,
        row_level.kind if row_level else statement.kind,
        row_level.target.of(sql).lower() if row_level else statement.target,
        build(statement),
        tuple(ScanDecision(*each, Reason.PASSED_THROUGH) for each in statement.passed_through),
        warnings=settings.warnings,
        row_level=row_level,
    )
    for rule in RULES:
        planned = rule(planned, settings)
    return planned


def _not_planned(row_level: RowLevel, statement: Statement) -> str | None:
    """Why a statement that changes rows of a target is not planned; ``None`` if it is."""
    first = statement.blocks[0].first if statement.blocks else None
    provider = first.table.provider if isinstance(first, TableRelation) else ""
    if not provider:
        return f"{row_level.kind} is planned for tables of {', '.join(LAKE_FORMATS)} only"
    return LAKE_FORMATS[provider].not_planned.get(row_level.kind)
