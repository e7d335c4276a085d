"""The local task for scans of tables whose own metadata finds the files, such as Iceberg's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import Decision, PlannedFiles, RowFilter
from airflow_hive_opt.pruning.decisions import KeySource, ScanDecision
from airflow_hive_opt.pruning.plan import Plan
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.lake_files import counted, expression_of
from airflow_hive_opt.spark.keys.key_ends import Range, key_ends
from airflow_hive_opt.spark.keys.key_set import Keys
from airflow_hive_opt.spark.local_task.changes import merged_into
from airflow_hive_opt.spark.local_task.earlier_runs import is_for_nothing
from airflow_hive_opt.spark.local_task.key_sets import FAILURES, failed
from airflow_hive_opt.spark.local_task.value_lists import value_filters
from airflow_hive_opt.statement.lake_formats import ICEBERG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


FEW_FILES = 100
"""With so few files a condition costs nothing, and other writers conflict less with MERGE."""


@dataclass(frozen=True)
class LakeScan:
    """What the local task found out about one scan; without keys it has no filters."""

    decision: Decision
    filters: tuple[RowFilter, ...] = ()
    files: PlannedFiles | None = None


def unrestricted(decision: ScanDecision, reason: Reason) -> LakeScan:
    """A scan without conditions, for ``reason``."""
    return LakeScan(Decision(decision.scan, reason, reason.sentence))


def lake_scan(
    session: SparkSession,
    decision: ScanDecision,
    plan: Plan,
    keys_of: Callable[[KeySource], Keys | Reason],
    parameters: Mapping[str, object],
) -> LakeScan:
    """The conditions on the scan and the files that they leave; a failure leaves it whole."""

    def ends(source: KeySource) -> list[Range | None]:
        return [] if source.skeletons else key_ends(session, source, parameters)

    try:
        found = value_filters(decision, keys_of, ends, merged_into(plan, decision))
    except FAILURES as error:
        found = failed(f"{decision.scan.name} can't be restricted", error)
    if isinstance(found, Reason):
        return unrestricted(decision, found)
    relation = decision.relation
    assert relation is not None, "a pruned decision"
    names = {visible: column.name for visible, column in relation.table.visible_pruning_columns}
    expressed = decision.table.provider == ICEBERG
    planned = PlannedFiles(
        decision.scan,
        expression_of([(names[each.column], each) for each in found]) if expressed else None,
    )
    planned = counted(session, planned)
    if (none := _why_for_nothing(planned)) is not None:
        return unrestricted(decision, none)
    return replace(unrestricted(decision, Reason.RESTRICTED), filters=found, files=planned)


def _why_for_nothing(found: PlannedFiles) -> Reason | None:
    """Why the condition would only cost time: it leaves nearly all of many files."""
    if found.files is None or found.total_files is None or found.files <= FEW_FILES:
        return None
    if found.files >= found.total_files:
        return Reason.ALL_FILES_MATCH
    return Reason.MOST_FILES_MATCH if is_for_nothing(found.files, found.total_files) else None
