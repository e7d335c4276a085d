"""The snapshots of lake tables that give keys, and a statement that is held to them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.descriptor import Snapshot
from airflow_hive_opt.pruning.operators import Operator, PassedThrough, TableScan, walk
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.spark.catalog.lakes.formats import loaded_format, named
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import Place
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.edits import Edit, spliced
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.tables import references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holding:
    """A statement that reads tables as of their snapshots.

    ``free`` has the tables that are not held, each with the reason.
    """

    sql: str
    snapshots: tuple[Snapshot, ...]
    free: Mapping[str, str]

    def log(self) -> None:
        """Logs which tables are held, and why others are not."""
        for found in self.snapshots:
            if found.held:
                log.info(
                    "%s will be read at snapshot %s, from which its keys come",
                    found.table,
                    found.snapshot,
                )
        for table, why in self.free.items():
            log.warning("%s can't be held to its snapshot: %s", table, why)


def key_snapshots(session: SparkSession, catalog: Catalog, plan: Plan) -> tuple[Snapshot, ...]:
    """The current snapshot of each lake table that gives keys to a restricted scan.

    These have none: empty tables, views, branches, and tables whose version the statement names.
    """
    if not any(_lake_tables(plan)):
        return ()
    names = dict.fromkeys(table.name for table in _key_tables(catalog, plan))
    found = (best_effort(partial(current, session, name)) for name in names)
    return tuple(snapshot for snapshot in found if snapshot is not None)


def hold(
    session: SparkSession, catalog: Catalog, plan: Plan, snapshots: Sequence[Snapshot]
) -> Holding:
    """The plan's statement, held to ``snapshots``.

    Within one query Spark reads a table at one snapshot. So a table is held only if it is held
    wherever the statement reads it.
    """
    free = {found.table: why for found in snapshots if (why := _why_free(session, plan, found))}
    ids = {found.table: found.snapshot for found in snapshots if found.table not in free}
    sql = _at_snapshots(session, plan, ids)
    names = _read_now(sql)
    if names is None:
        free.update(dict.fromkeys(ids, "the statement with its version can't be parsed"))
    for name in names or ():
        table = catalog.table(name)
        if table is None or is_view(table):
            free.update(dict.fromkeys(ids, f"the statement reads the view {name}"))
        elif table.name in ids:
            free[table.name] = "the statement reads the table at a place that can't name a version"
    held = {table: id_ for table, id_ in ids.items() if table not in free}
    return Holding(
        _at_snapshots(session, plan, held),
        tuple(
            replace(found, held=True, table_id=_table_id(session, found.table))
            if found.table in held
            else found
            for found in snapshots
        ),
        free,
    )


def log_newer(session: SparkSession, snapshots: Sequence[Snapshot]) -> None:
    """Logs which tables have another snapshot than the one from which their keys came."""
    for found in snapshots:
        if found.held:
            log.info(
                "%s is read at snapshot %s, from which its keys came", found.table, found.snapshot
            )
            continue
        now = best_effort(partial(current, session, found.table))
        if now is not None and now.snapshot != found.snapshot:
            log.info(
                "%s is read at snapshot %s, but its keys came from snapshot %s",
                found.table,
                now.snapshot,
                found.snapshot,
            )


def current(session: SparkSession, table: str, with_id: bool = False) -> Snapshot | None:
    """The snapshot at which the session reads a table; ``None`` if it reads another version.

    Without ``with_id`` the table's ID is left out, which may take a query. Raises Spark's errors.
    """
    place = Place.of(table)
    loaded = load(session, place)
    format_ = loaded_format(session, loaded)
    version = None if format_ is None else format_.version(session, place, loaded)
    if format_ is None or version is None:
        return None
    return Snapshot(table, version, table_id=format_.table_id(loaded) if with_id else "")


def _table_id(session: SparkSession, table: str) -> str:
    found = current(session, table, with_id=True)
    return "" if found is None else found.table_id


def _why_free(session: SparkSession, plan: Plan, found: Snapshot) -> str | None:
    """Why the statement can't read the table at its snapshot; ``None`` if it can."""
    for decision in plan.decisions:
        if decision.pruned and decision.table.name == found.table:
            return "keys also restrict the table's scan"
    target = plan.row_level.target if plan.row_level else None
    scans = {each.reference: each.table.name for each in relations(plan)}
    if target is not None and scans.get(target) == found.table:
        return "the statement changes the table"
    if not best_effort(partial(has_same_columns, session, found)):
        return "the table's columns have changed since its last snapshot"
    return None


def has_same_columns(session: SparkSession, found: Snapshot) -> bool:
    """Whether reading the snapshot by its number gives the columns that the table has now."""
    loaded = load(session, Place.of(found.table))
    format_ = loaded_format(session, loaded)
    return format_ is not None and format_.has_columns_of(session, loaded, found.snapshot)


def _at_snapshots(session: SparkSession, plan: Plan, ids: Mapping[str, str]) -> str:
    scans = {
        relation.reference: relation
        for relation in relations(plan)
        if relation.table.name in ids and relation.restrictable
    }
    edits = [
        Edit(relation.reference, _at_snapshot(session, relation, ids[relation.table.name]))
        for relation in scans.values()
    ]
    return spliced(plan.sql, edits)


def _at_snapshot(session: SparkSession, relation: TableRelation, snapshot: str) -> str:
    alias = "" if relation.aliased else f" AS {quote(relation.alias)}"
    clause = named(session, relation.table.provider).as_of(snapshot)
    return f"(SELECT * FROM {relation.text} {clause}){alias}"


def _read_now(sql: str) -> dict[str, None] | None:
    """The names that a statement reads without a version; ``None`` if it can't be parsed."""
    try:
        return dict.fromkeys(each.name for each in references(sql) if not each.versioned)
    except (PlanError, RecursionError):
        return None


def _key_tables(catalog: Catalog, plan: Plan) -> Iterator[Table]:
    """The lake tables that the plan's key queries read without a version."""
    for decision in plan.decisions:
        for source in decision.sources if decision.pruned else ():
            views = {view for view, _ in source.skeletons}
            for name in _read_now(source.sql) or ():
                table = None if name in views else catalog.table(name)
                if table is not None and table.provider:
                    yield table


def is_view(table: Table) -> bool:
    """Whether the catalog describes a view."""
    return table.location is None and not table.provider


def _lake_tables(plan: Plan) -> Iterator[Table]:
    for operator in _operators(plan):
        if isinstance(operator, PassedThrough):
            yield from (each for each in operator.relation.tables if each.provider)
    yield from (each.table for each in relations(plan) if each.table.provider)


def relations(plan: Plan) -> Iterator[TableRelation]:
    """The tables and views that the plan scans."""
    for operator in _operators(plan):
        if isinstance(operator, TableScan):
            yield operator.relation


def _operators(plan: Plan) -> Iterator[Operator]:
    for tree in plan.trees:
        yield from walk(tree)
