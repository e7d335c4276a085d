"""Keys as a condition on a data column: collected, and kept where they skip enough of the files.

A list that stands in the statement is pushed down to Parquet and ORC. Rows are few and together
or there is no gain: keys all over a table cost more to compare than they save.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from airflow_hive_opt.pruning.decisions import KeyPredicate
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.runtime.descriptor import RowFilter, SourceKeys
from airflow_hive_opt.runtime.partitions import Partition
from airflow_hive_opt.spark.catalog.connect_catalog import SessionCatalog
from airflow_hive_opt.spark.keys.key_set import Keys
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
from airflow_hive_opt.spark.narrowing.literals import is_plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# See docs/key-predicates.md. Parquet gets a list as a chain of ORs: comparing a long one costs more
# than it skips, and at 2,000 it overflows the stack.
MOST_KEYS_IN_A_LIST = 200
MOST_ROWS_READ = 0.25


def promising_row_groups(
    session: SparkSession,
    catalog: SessionCatalog,
    predicate: KeyPredicate,
    partitions: Sequence[Partition] | None,
) -> list[RowGroup]:
    """Row groups of the scan's files, none where not even a single key would skip enough.

    ``partitions`` are those that will be read, ``None`` for a table that has none.
    """
    table = predicate.relation.table
    format_, location = catalog.storage(table)
    if not format_:
        return []
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
    """The scan's condition: a list of few keys, a range of many, or why neither."""
    tuples = keys.tuples([predicate.type])
    if tuples is None:
        return Reason.TYPE_NOT_COMPARABLE
    # Bytes that are no UTF-8 reach Python changed. And what the scan must fulfil Spark carries over
    # to partition columns that equal it, where the metastore's filters have no word for quotes.
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
    return RowFilter(
        relation.alias,
        relation.table.name,
        relation.text,
        relation.aliased,
        (relation.reference.start, relation.reference.stop),
        predicate.column,
        predicate.type,
        tuple(map(str, values)),
        is_range,
        SourceKeys(source.aliases, source.name, source.sql, keys.count),
    )


def longest_list(row_filters: Sequence[RowFilter]) -> int:
    """How many values the longest of the filters' lists has: what Parquet must take whole."""
    return max((len(found.values) for found in row_filters), default=0)
