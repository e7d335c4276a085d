"""The one snapshot of a table that conditions by a key index are true for, and how to keep to it.

A query reads the table at this snapshot wherever it reads it. A statement that changes rows of the
table runs on a branch that begins there (:mod:`~airflow_hive_opt.spark.map_join.branch`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional, Union

from airflow_hive_opt.documents.indexed_scans import HeldScan
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.query import TableRelation
from airflow_hive_opt.restriction.restrict import restrict
from airflow_hive_opt.spark.catalog.lakes.formats import indexed_format, loaded_format
from airflow_hive_opt.spark.catalog.lakes.indexed_format import Identity
from airflow_hive_opt.spark.catalog.lakes.loading import load
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG, Place
from airflow_hive_opt.spark.catalog.lakes.tables import described
from airflow_hive_opt.spark.local_task.listed_keys import reads_current_metadata
from airflow_hive_opt.spark.local_task.partition_values import partition_fields
from airflow_hive_opt.spark.local_task.snapshots import (
    current,
    is_view,
    relations,
)
from airflow_hive_opt.statement.catalog import Catalog, Table
from airflow_hive_opt.statement.errors import PlanError
from airflow_hive_opt.statement.lake_formats import WAP_ID
from airflow_hive_opt.statement.tables import references

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WAP_PROPERTY = "write.wap.enabled"


@dataclass(frozen=True)
class FixedSnapshot:
    """The snapshot of a table at which a statement reads it.

    ``held`` are its scans, which must read the snapshot; empty if the statement changes the table.
    ``identity`` is what indexes know the table by at this snapshot. ``table_id`` is as in
    :class:`~airflow_hive_opt.documents.descriptor.Snapshot`. ``total_bytes`` is the size of all
    files. ``whole_partitions`` says that the fields which can become conditions make up the
    table's partitions.
    """

    snapshot: str
    held: tuple[HeldScan, ...]
    identity: Identity
    table_id: str = ""
    total_bytes: Optional[int] = None
    whole_partitions: bool = False


class FixedSnapshots:
    """The snapshots of the tables of one plan: each table has the same one for the whole run."""

    def __init__(self, session: SparkSession, catalog: Catalog, plan: Plan) -> None:
        self._session = session
        self._catalog = catalog
        self._plan = plan
        self._found: dict[tuple[str, bool], Union[FixedSnapshot, str]] = {}

    def of(self, relation: TableRelation) -> Union[FixedSnapshot, str]:
        """See :func:`fixed_snapshot`."""
        asked = relation.table.name, is_target(self._plan, relation)
        if asked not in self._found:
            found = fixed_snapshot(self._session, self._catalog, self._plan, relation)
            self._found[asked] = found
        return self._found[asked]


def fixed_snapshot(
    session: SparkSession, catalog: Catalog, plan: Plan, relation: TableRelation
) -> Union[FixedSnapshot, str]:
    """The snapshot of the table of ``relation``, or why there is none; raises Spark's errors."""
    if not reads_current_metadata(session):
        return "the session has cached rows, or reads a branch"
    table, place = relation.table, Place.of(relation.table.name)
    loaded = load(session, place)
    format_ = loaded_format(session, loaded)
    version = None if format_ is None else format_.version(session, place, loaded)
    if format_ is None or version is None:
        return f"{table.name} has no current snapshot, or its name is that of a version"
    if not format_.has_columns_of(session, loaded, version):
        return "the table's columns have changed since its last snapshot"
    now = described(session, place, loaded)
    if now is None or not _is_as_planned(table.scanned, now):
        return "the table's columns or partitions have changed since the statement was planned"
    indexed = indexed_format(format_.name)
    identity, id_ = indexed.identity(session, loaded), indexed.table_id(loaded)
    fields = {field for _, field in partition_fields(relation)}
    sizes = now.total_bytes, bool(fields) and indexed.has_only(loaded, fields)
    if is_target(plan, relation):
        if not indexed.has_branches:
            return f"{indexed.name} tables have no branches, on which a statement could change them"
        why = _why_no_branch(session, catalog, plan, table.name, loaded)
        return why or FixedSnapshot(version, (), identity, id_, *sizes)
    if _may_write(session, catalog, plan, table, id_):
        return "the statement also writes the table"
    scans = {
        each.reference: HeldScan(each.scan, each.text, each.aliased, version)
        for each in relations(plan)
        if each.table.name == table.name and each.restrictable
    }
    held = tuple(scans.values())
    why = _why_read_now(catalog, restrict(plan.sql, (), {}, held=held), table.name, 0)
    return why or FixedSnapshot(version, held, identity, id_, *sizes)


def is_target(plan: Plan, relation: TableRelation) -> bool:
    """Whether the statement changes rows of the relation."""
    return plan.row_level is not None and plan.row_level.target == relation.reference


def _is_as_planned(planned: Table, now: Table) -> bool:
    """Whether a table has the columns and partitions for which the statement was planned."""
    return all(
        getattr(now, name) == getattr(planned, name)
        for name in ("columns", "partitioned_by", "partition_fields", "partition_times")
    )


def _may_write(
    session: SparkSession, catalog: Catalog, plan: Plan, table: Table, table_id: str
) -> bool:
    """Whether the statement may put rows into the table.

    A table may have names in several catalogs. A Delta table may also have its path, so its
    ``table_id`` is compared. Of a target that does not exist yet, only the last part is.
    """
    if not plan.target:
        return False
    target = plan.target.replace("`", "")
    found = catalog.table(target)
    if table_id and found is not None and found.provider == table.provider:
        target_now = current(session, found.name, with_id=True)
        return target_now is None or target_now.table_id == table_id
    names = (target if found is None else found.name).lower().split(".")
    compared = 1 if found is None else 2
    return names[-compared:] == table.name.lower().split(".")[-compared:]


def _why_no_branch(
    session: SparkSession, catalog: Catalog, plan: Plan, name: str, loaded: Any
) -> str | None:
    """Why the statement can't run on a branch of the table that it changes."""
    if Place.of(name).catalog == SESSION_CATALOG:
        return "Spark's session catalog can't name a branch"
    if session.conf.get(WAP_ID, None):
        return f"{WAP_ID} is set"
    if str(loaded.properties().get(_WAP_PROPERTY)).lower() == "true":
        return f"{_WAP_PROPERTY} is true"
    return _why_read_now(catalog, plan.sql, name, 1)


def _why_read_now(catalog: Catalog, sql: str, name: str, most: int) -> str | None:
    """Why ``sql`` may read the table ``name`` without a version at more than ``most`` places."""
    try:
        names = [each.name for each in references(sql) if not each.versioned]
    except (PlanError, RecursionError):
        return "the statement with its version can't be parsed"
    for each in names:
        table = catalog.table(each)
        if table is None or is_view(table):
            return f"the statement reads the view {each}"
        if table.name.startswith(f"{name}."):
            return f"the statement reads the table's metadata in {each}"
        most -= table.name == name
    return None if most >= 0 else "the statement reads the table at a place that can't be held"
