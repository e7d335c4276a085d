"""Turns keys into a condition on a data column, if the condition skips enough of the files.

Spark pushes a list of literals down to Parquet and ORC. That pays off only if the matching rows are
few and close together. Comparing keys that are spread over the whole table costs more than it
saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from airflow_hive_opt.documents.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.metastores.partitions import Partition
from airflow_hive_opt.pruning.decisions import KeyPredicate
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.spark.catalog.session_catalog import SessionCatalog
from airflow_hive_opt.spark.keys.key_set import Keys
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
from airflow_hive_opt.spark.restriction.literals import is_plain
from airflow_hive_opt.spark.session.connect import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# See docs/how-it-works/key-predicates.md. Spark gives Parquet a list as a chain of ORs. Comparing
# a long list costs more than it skips, and 2,000 values overflow the stack.
MOST_KEYS_IN_A_LIST = 200
MOST_ROWS_READ = 0.25


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
