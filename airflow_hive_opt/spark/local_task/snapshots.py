"""The snapshots of small Iceberg tables, and a statement that is held to them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.operators import Operator, PassedThrough, TableScan, walk
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.rewriting.blocks import Edit, spliced
from airflow_hive_opt.runtime.descriptor import Snapshot
from airflow_hive_opt.spark.catalog.lake_tables import Place, is_a_version, load
from airflow_hive_opt.spark.session.best_effort import best_effort
from airflow_hive_opt.statement.identifiers import quote
from airflow_hive_opt.statement.lake_formats import ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def small_snapshots(session: SparkSession, plan: Plan) -> tuple[Snapshot, ...]:
    """The current snapshot of each Iceberg table that the statement reads and does not restrict."""
    names = dict.fromkeys(relation.table.name for relation in _small(plan))
    found = (best_effort(partial(_current, session, name)) for name in names)
    return tuple(snapshot for snapshot in found if snapshot is not None)


def hold(
    session: SparkSession, plan: Plan, snapshots: Sequence[Snapshot]
) -> tuple[str, tuple[Snapshot, ...]]:
    """The plan's statement, which reads small tables ``VERSION AS OF`` their snapshots.

    Also returns ``snapshots`` and whether they are held. A table is held only if that is possible
    wherever the statement reads it.
    """
    free = set(_read_otherwise(plan))
    ids = {
        found.table: found.snapshot
        for found in snapshots
        if found.table not in free and best_effort(partial(_has_same_columns, session, found.table))
    }
    edits = [
        Edit(relation.reference, _at_snapshot(relation, ids[relation.table.name]))
        for relation in _small(plan)
        if relation.table.name in ids
    ]
    for found in snapshots:
        if found.table in ids:
            log.info("%s is read at its snapshot %s, as its keys are", found.table, found.snapshot)
        else:
            log.warning("%s can't be held to its snapshot in this statement", found.table)
    return (
        spliced(plan.sql, edits),
        tuple(replace(found, held=found.table in ids) for found in snapshots),
    )


def log_newer(session: SparkSession, snapshots: Sequence[Snapshot]) -> None:
    """Logs which tables have another snapshot than the one from which their keys came."""
    for found in snapshots:
        if found.held:
            log.info("%s is read at its snapshot %s", found.table, found.snapshot)
            continue
        now = best_effort(partial(_current, session, found.table))
        if now is not None and now.snapshot != found.snapshot:
            log.info(
                "%s is read at its snapshot %s, but its keys came from snapshot %s",
                found.table,
                now.snapshot,
                found.snapshot,
            )


def _current(session: SparkSession, table: str) -> Snapshot | None:
    """``None`` for an empty table, and for the name of a branch or of a snapshot."""
    loaded = load(session, Place.of(table))
    if is_a_version(loaded):
        return None
    snapshot = loaded.table().currentSnapshot()
    return None if snapshot is None else Snapshot(table, str(snapshot.snapshotId()))


def _has_same_columns(session: SparkSession, table: str) -> bool:
    """Whether reading the snapshot by its number gives the columns that the table has now."""
    iceberg = load(session, Place.of(table)).table()
    return bool(iceberg.currentSnapshot().schemaId() == iceberg.schema().schemaId())


def _small(plan: Plan) -> Iterator[TableRelation]:
    """Each place where the statement names an Iceberg table that its keys do not restrict."""
    used = _used_otherwise(plan)
    found = {
        relation.reference: relation
        for relation in _lake_relations(plan)
        if relation.reference not in used
    }
    yield from found.values()


def _read_otherwise(plan: Plan) -> Iterator[str]:
    """Tables that the statement also changes, restricts, or reads where no version can be named."""
    used = _used_otherwise(plan)
    for relation in _lake_relations(plan):
        if relation.reference in used or not relation.restrictable:
            yield relation.table.name
    for operator in _operators(plan):
        if isinstance(operator, PassedThrough):
            yield from (table.name for table in operator.relation.tables)


def _used_otherwise(plan: Plan) -> set[object]:
    target = plan.row_level.target if plan.row_level else None
    pruned = (found.relation for found in plan.decisions if found.pruned)
    return {target, *(relation.reference for relation in pruned if relation is not None)}


def _lake_relations(plan: Plan) -> Iterator[TableRelation]:
    for operator in _operators(plan):
        if isinstance(operator, TableScan) and operator.relation.table.provider == ICEBERG:
            yield operator.relation


def _operators(plan: Plan) -> Iterator[Operator]:
    for tree in plan.trees:
        yield from walk(tree)


def _at_snapshot(relation: TableRelation, snapshot: str) -> str:
    alias = "" if relation.aliased else f" AS {quote(relation.alias)}"
    return f"(SELECT * FROM {relation.text} VERSION AS OF {snapshot}){alias}"
