"""Makes a plan from SQL text: parse, resolve, build, apply the rules."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_hive_opt.pruning.build import build
from airflow_hive_opt.pruning.data_columns import DataColumns
from airflow_hive_opt.pruning.decisions import KeyPredicate, ScanDecision
from airflow_hive_opt.pruning.operators import Operator
from airflow_hive_opt.pruning.query import Statement, TableRelation
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.pruning.resolve import resolve
from airflow_hive_opt.pruning.row_level import RowLevel, as_query
from airflow_hive_opt.pruning.rules.key_predicates import find_key_predicates
from airflow_hive_opt.pruning.rules.partition_pruning import prune_partitions
from airflow_hive_opt.pruning.rules.predicate_pushdown import push_down
from airflow_hive_opt.statement.budget import check_budget
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.errors import TooComplex
from airflow_hive_opt.statement.lake_formats import HUDI
from airflow_hive_opt.statement.parse import parse, why_unsupported
from airflow_hive_opt.statement.settings import KEY_PREDICATE, UNTESTED, Settings


@dataclass(frozen=True)
class Plan:
    """The plan for the statement ``sql``.

    ``kind`` is ``None`` for a statement that passes through to Spark, and ``passed_through`` says
    why. ``trees`` has the main query's operator trees first, one for each branch of a set
    operation, then those of CTEs and of subqueries in expressions. ``row_level`` is set for MERGE,
    UPDATE and DELETE.
    """

    sql: str
    kind: str | None
    target: str | None
    trees: tuple[Operator, ...]
    decisions: tuple[ScanDecision, ...]
    predicates: tuple[KeyPredicate, ...] = ()
    warnings: tuple[str, ...] = ()
    passed_through: str | None = None
    row_level: RowLevel | None = None


def passing_through(sql: str, why: str) -> Plan:
    """The plan of a statement that passes through to Spark; ``why`` is the reason."""
    return Plan(sql, None, None, (), (), passed_through=why)


def plan(sql: str, catalog: Catalog, settings: Settings | None = None) -> Plan:
    """Plans one statement.

    Raises :class:`~airflow_hive_opt.statement.errors.PlanError`, and
    :class:`~airflow_hive_opt.statement.budget.OverBudget` inside a budget.
    """
    settings = settings or Settings.of()
    catalog = DataColumns(catalog) if settings.is_on(KEY_PREDICATE) else catalog
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
        return passing_through(sql, "statements of this kind, or of this form, are not planned")
    if row_level is not None and (why := _not_planned(row_level, statement, settings)):
        return passing_through(sql, why)
    trees: tuple[Operator, ...] = tuple(map(push_down, build(statement)))
    left = tuple(
        ScanDecision(scan, table, Reason.PASSED_THROUGH) for scan, table in statement.passed_through
    )
    return Plan(
        sql,
        row_level.kind if row_level else statement.kind,
        row_level.target.of(sql).lower() if row_level else statement.target,
        trees,
        tuple(_possible(found, row_level) for found in prune_partitions(trees, settings)) + left,
        find_key_predicates(trees, settings),
        settings.warnings,
        row_level=row_level,
    )


def _not_planned(row_level: RowLevel, statement: Statement, settings: Settings) -> str | None:
    """Why a statement that changes rows of a target is not planned; ``None`` if it is.

    MERGE into a Hudi table with a record key checks ON when it runs, and fails for anything but
    equalities.
    """
    first = statement.blocks[0].first if statement.blocks else None
    provider = first.table.provider if isinstance(first, TableRelation) else ""
    if not provider:
        return f"{row_level.kind} is planned for Iceberg tables only"
    if not settings.restricts(provider):
        return (
            f"{row_level.kind} is planned for Iceberg tables, and if {UNTESTED} names {provider}, "
            f"for those of {provider}"
        )
    if provider == HUDI and row_level.kind == "MERGE":
        return "Hudi accepts only equalities in MERGE's ON, so no keys can be added there"
    return None


def _possible(decision: ScanDecision, row_level: RowLevel | None) -> ScanDecision:
    """The decision for a scan, without its keys where a statement that changes rows can't use them.

    If all rows of the target are read, keys save nothing there. The target's own keys must not
    restrict another scan: a row that another run adds to the target would find no match there.
    """
    if row_level is None or not decision.pruned or decision.relation is None:
        return decision
    if decision.relation.reference == row_level.target:
        if not row_level.reads_whole_target:
            return decision
        return replace(decision, reason=Reason.NOT_MATCHED_BY_SOURCE, alternatives=())
    if not any(row_level.target_alias in source.aliases for source in decision.sources):
        return decision
    return replace(decision, reason=Reason.KEYS_OF_THE_TARGET, alternatives=())
