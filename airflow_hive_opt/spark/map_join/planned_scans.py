"""The files of scans that were not counted before the statement, from its own plan.

Delta chooses the files of a scan when it plans a statement, by a Spark job over the table's log. To
count them before would run the same job twice. If the plan does not tell what the keys alone leave,
the files are counted after the statement: it has further conditions on the table, or its plan has
no such scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from airflow_hive_opt.documents.best_effort import best_effort
from airflow_hive_opt.documents.descriptor import (
    Decision,
    Descriptor,
    PlannedFiles,
    RowFilter,
)
from airflow_hive_opt.documents.indexed_scans import SkippedKeys
from airflow_hive_opt.local_task.earlier_runs import files_for_nothing
from airflow_hive_opt.spark.catalog.lakes.delta import conditions_of_scan, files_of_scan
from airflow_hive_opt.spark.catalog.lakes.files import counted
from airflow_hive_opt.spark.catalog.lakes.place import SESSION_CATALOG
from airflow_hive_opt.spark.map_join.table_reads import table_of
from airflow_hive_opt.spark.session.physical_operators import leaves
from airflow_hive_opt.statement.scan_ref import ScanRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def with_files_of_plan(
    session: SparkSession, descriptor: Descriptor, plan: Optional[Callable[[], Any]]
) -> Descriptor:
    """The descriptor with the numbers of files that its keys leave; ``plan`` is that of Spark.

    A scan whose keys have left nearly all files gets its ``skipped_keys``, so that the next run
    does not read them.
    """
    if not any(found.keys_digest for found in descriptor.planned_files):
        return descriptor
    scans = (best_effort(partial(_scans, plan)) if plan else None) or {}
    by_scan: dict[ScanRef, list[RowFilter]] = {}
    for each in descriptor.row_filters:
        by_scan.setdefault(each.scan, []).append(each)
    files = tuple(
        _counted(session, found, by_scan[found.scan], scans.get(_key(found.scan.table), []))
        if found.keys_digest
        else found
        for found in descriptor.planned_files
    )
    digests = {
        found.scan: earlier.keys_digest
        for found, earlier in zip(files, descriptor.planned_files)
        if earlier.keys_digest and files_for_nothing(found)
    }
    decisions = tuple(
        _with_skipped(found, digests.get(found.scan)) for found in descriptor.decisions
    )
    return replace(descriptor, planned_files=files, decisions=decisions)


def _scans(plan: Callable[[], Any]) -> dict[str, list[Any]]:
    """The relations of files that a plan of the JVM reads, by the :func:`_key` of their table."""
    found: dict[str, list[Any]] = {}
    for kind, operator in leaves(plan()):
        if kind == "FileSourceScanExec" and (name := table_of(kind, operator)):
            found.setdefault(_key(name), []).append(operator.relation())
    return found


def _key(table: str) -> str:
    """What a table's names in a statement and in a plan have in common.

    >>> _key("spark_catalog.Dw.orders"), _key("delta.file:/data/orders")
    ('dw.orders', 'delta./data/orders')
    """
    name = table.removeprefix(f"{SESSION_CATALOG}.").lower()
    return name.replace("delta.file:/", "delta./", 1)


def _counted(
    session: SparkSession,
    found: PlannedFiles,
    filters: Sequence[RowFilter],
    relations: Sequence[Any],
) -> PlannedFiles:
    """The numbers of the scan in the plan, if there is exactly one that has only its conditions."""
    found = replace(found, keys_digest=None)
    chosen = best_effort(lambda: [each for each in relations if _is_chosen_by(each, filters)]) or ()
    if len(chosen) == 1:
        of_plan = best_effort(partial(files_of_scan, session, chosen[0], found))
        if of_plan is not None:
            return of_plan
    return counted(session, found)


def _is_chosen_by(relation: Any, filters: Sequence[RowFilter]) -> bool:
    """Whether Delta has chosen the relation's files by the values of the filters alone."""
    conditions = conditions_of_scan(relation)
    if conditions is None or len(conditions) != len(filters):
        return False
    return all(
        any(
            len(each.values) == number and all(value in sql for value in each.values)
            for number, sql in conditions
        )
        for each in filters
    )


def _with_skipped(decision: Decision, digest: Optional[str]) -> Decision:
    return decision if digest is None else replace(decision, skipped_keys=SkippedKeys(digest, 0))
