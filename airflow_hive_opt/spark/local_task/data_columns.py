"""Turns keys into a condition on a data column, if the condition skips enough of the files.

Spark pushes a list of literals down to Parquet and ORC. That pays off only if the matching rows are
few and close together. Comparing keys that are spread over the whole table costs more than it
saves.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys, Target
from airflow_hive_opt.local_task.context import LocalTaskContext
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.local_task.scan_kinds import Entry
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import KeyPredicate, KeySource
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.restriction.literals import is_plain
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.local_task.column_samples import sampled_by_query
from airflow_hive_opt.spark.local_task.row_filters import row_filter_on
from airflow_hive_opt.spark.local_task.row_groups import (
    FILES,
    Bound,
    RowGroup,
    sampled_row_groups,
    share_of_one,
    share_of_range,
    share_read,
    spread,
)
from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# See docs/how-it-works/key-predicates.md. Spark gives Parquet a list as a chain of ORs. Comparing
# a long list costs more than it skips, and 2,000 values overflow the stack.
MOST_KEYS_IN_A_LIST = 200
MOST_ROWS_READ = 0.25
log = logging.getLogger(__name__)


class DataColumn:
    """A :class:`~airflow_hive_opt.local_task.scan_kinds.RestrictedScan` by one data column.

    ``target`` is the same scan's list of partitions, if it has one.
    """

    def __init__(
        self,
        context: LocalTaskContext,
        session: SparkSession,
        catalog: SessionCatalog,
        predicate: KeyPredicate,
        target: Target | None,
    ) -> None:
        self._context = context
        self._session = session
        self._catalog = catalog
        self._predicate = predicate
        self._target = target

    def key_sources(self) -> Sequence[KeySource]:
        """None: the keys are read only if a sample of the files is promising."""
        return ()

    def entry(self) -> Entry:
        """The keys as a condition on the column; the log says why there is none."""
        found = self._row_filter()
        if isinstance(found, RowFilter):
            return Entry(filters=(found,))
        column = f"{self._predicate.relation.scan.name}.{self._predicate.column}"
        log.info("no condition with keys on %s: %s, %s", column, found, found.sentence)
        return Entry()

    def _row_filter(self) -> RowFilter | Reason:
        context, table = self._context, self._predicate.relation.table
        if table.partition_columns and not table.partitions_in_metastore:
            return Reason.PARTITIONS_NOT_IN_METASTORE
        if context.metastore_failed:
            return Reason.KEY_SOURCE_FAILED
        try:
            partitions = self._target.partitions if self._target else None
            if self._target is None and table.partition_columns:
                partitions = tuple(context.partition_names(table))
            groups = promising_row_groups(self._session, self._catalog, self._predicate, partitions)
            if not groups:
                return Reason.KEYS_IN_MOST_ROW_GROUPS
            keys = context.keys.of(self._predicate.source)
            return keys if isinstance(keys, Reason) else row_filter(self._predicate, keys, groups)
        except context.engine.failures as error:
            scan = self._predicate.relation.scan
            return context.failed(f"the files of {scan.name} can't be read", error)


def promising_row_groups(
    session: SparkSession,
    catalog: SessionCatalog,
    predicate: KeyPredicate,
    partitions: Sequence[Partition] | None,
) -> list[RowGroup]:
    """Row groups of a sample of the scan's files; empty if even one key would skip too few rows.

    ``partitions`` are those that the scan reads, ``None`` for a table without partitions.
    """
    table = predicate.relation.table
    format_, location = catalog.storage(table)
    if not format_:
        return []
    if is_remote(session):
        groups = sampled_by_query(
            session, format_, table, partitions, predicate.column, predicate.type
        )
    else:
        folders = [location]
        if partitions is not None:
            sample = spread(partitions, FILES)
            bare = [part for part in sample if part.location is None]
            located = [*sample, *(catalog.partitions_by_names(table, bare) if bare else ())]
            folders = [part.location for part in located if part.location is not None]
        groups = sampled_row_groups(session, format_, folders, predicate.column, predicate.type)
    return groups if share_of_one(groups) <= MOST_ROWS_READ else []


def row_filter(
    predicate: KeyPredicate, keys: Keys, groups: Sequence[RowGroup]
) -> RowFilter | Reason:
    """The scan's condition, or why it has none: a list of few keys, or a range of many keys."""
    tuples = keys.tuples([predicate.type])
    if tuples is None:
        return Reason.TYPE_NOT_COMPARABLE
    # Texts that are not UTF-8 change on their way to Python. And Spark infers the same condition
    # for partition columns that equal this one, but the metastore's filters can't express quotes.
    if not all(is_plain(value) for (value,) in tuples):
        return Reason.KEYS_IN_MOST_ROW_GROUPS
    values: list[Bound] = sorted(
        value for (value,) in tuples if isinstance(value, (int, str, date))
    )
    is_range = len(values) > MOST_KEYS_IN_A_LIST
    if is_range:
        values = [values[0], values[-1]]
        share = share_of_range(groups, *values)
    else:
        share = share_read(groups, values)
    if share > MOST_ROWS_READ:
        return Reason.KEYS_IN_MOST_ROW_GROUPS
    relation, source = predicate.relation, keys.source
    return row_filter_on(
        relation,
        predicate.column,
        predicate.type,
        values,
        is_range,
        SourceKeys(source.aliases, source.name, source.sql, keys.count),
    )


def longest_list(row_filters: Sequence[RowFilter]) -> int:
    """The number of values in the longest list of the filters; Parquet must get the whole list."""
    return max((len(found.values) for found in row_filters), default=0)
