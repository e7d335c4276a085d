"""Finds joins that pruning has made redundant, and removes them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence

from airflow_hive_opt.documents.descriptor import Descriptor, Target
from airflow_hive_opt.documents.report import EliminatedJoins
from airflow_hive_opt.local_task.engine import Keys
from airflow_hive_opt.metastores.partitions import Value, matching
from airflow_hive_opt.pruning.decisions import ScanDecision
from airflow_hive_opt.pruning.scan_way import Way
from airflow_hive_opt.restriction.indexed import filters_of_reads
from airflow_hive_opt.restriction.restrict import is_exact, restrictions
from airflow_hive_opt.rewriting.blocks import Text
from airflow_hive_opt.rewriting.join_elimination import RedundantJoin, eliminate_joins
from airflow_hive_opt.statement.budget import OverBudget
from airflow_hive_opt.statement.catalog import Catalog
from airflow_hive_opt.statement.edits import spliced
from airflow_hive_opt.statement.parse import parse
from airflow_hive_opt.statement.scan_ref import ScanRef
from airflow_hive_opt.statement.zip_strict import zip_strict

log = logging.getLogger(__name__)


def redundant_joins(
    decision: ScanDecision,
    target: Target,
    found: Sequence[tuple[Keys, frozenset[tuple[Value, ...]]]],
    way: Way,
) -> Iterator[RedundantJoin]:
    """The joins of a pruned scan that are redundant, because its partitions decide them.

    ``found`` are the scan's keys with their tuples, ``way`` is how Spark finds the partitions. Two
    conditions hold for such a join: the restricted scan reads only partitions of these keys, and
    each key belongs to one row of its table.
    """
    relation = decision.relation
    if relation is None or decision.table.by_serde or relation.table.definition is not None:
        return
    known = [(k.source, k.source.scan, tuples) for k, tuples in found if k.unique]
    if not any(small for _, small, _ in known) or not is_exact(target, way):
        return
    for source, small, tuples in known:
        if small is None:
            continue
        at = [target.columns.index(name) for name in source.partition_columns]
        called_for = matching(target.partitions, target.types, [(at, tuples)])
        if len(list(called_for)) == target.kept:
            yield RedundantJoin(
                target.scan,
                small,
                tuple(
                    (column.name, name)
                    for column, name in zip_strict(source.columns, source.partition_columns)
                ),
                source.asked,
            )


def without_joins(
    sql: str,
    catalog: Catalog,
    descriptor: Descriptor,
    answered: Sequence[RedundantJoin],
    ways: Mapping[ScanRef, Way],
) -> EliminatedJoins | None:
    """``sql`` with restricted scans and without redundant joins; ``None`` if there are none.

    The descriptor is the one that the local task has just made for ``sql``.
    """
    if not answered:
        return None
    try:
        edits = restrictions(
            sql,
            descriptor.targets,
            ways,
            filters_of_reads(descriptor),
            descriptor.changes,
            descriptor.held_scans,
        )
        edits, left_out = eliminate_joins(Text(sql, parse(sql), catalog), answered, edits)
    except OverBudget as error:
        log.info("no join is removed: %s", error)
        return None
    except Exception:  # the statement with all its joins gives the same result
        log.warning("joins can't be removed from this statement", exc_info=True)
        return None
    if not left_out:
        return None
    return EliminatedJoins(
        spliced(sql, edits), tuple(dict.fromkeys(found.table for found in left_out))
    )
