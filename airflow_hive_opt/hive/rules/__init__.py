"""Hive's rules, in the order of Hive's own optimizers.

1. ``GRAPH_RULES`` change the operator graph: ``filter_propagation``, ``constant_folding`` (with
   ``constants``), ``operator_pushdown``, ``static_pruning``, ``sorted_group_by``,
   ``hinted_map_join``, ``bucket_map_join``, ``join_order``, ``reduce_sink_deduplication`` and
   ``correlation``.
2. ``fetch`` tells whether a query needs no job.
3. ``TASK_RULES`` change the tasks that the graph is cut into: ``automatic_map_join`` and
   ``sort_merge_to_map_join``.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.hive.graph.operator_graph import OperatorGraph
from airflow_hive_opt.hive.rules.automatic_map_join import convert_joins
from airflow_hive_opt.hive.rules.bucket_map_join import use_buckets
from airflow_hive_opt.hive.rules.constant_folding import fold_constants
from airflow_hive_opt.hive.rules.correlation import correlate
from airflow_hive_opt.hive.rules.filter_propagation import propagate_filters
from airflow_hive_opt.hive.rules.hinted_map_join import convert_hinted
from airflow_hive_opt.hive.rules.join_order import order_joins
from airflow_hive_opt.hive.rules.operator_pushdown import push_predicates
from airflow_hive_opt.hive.rules.reduce_sink_deduplication import deduplicate
from airflow_hive_opt.hive.rules.sort_merge_to_map_join import convert_sort_merge
from airflow_hive_opt.hive.rules.sorted_group_by import group_sorted
from airflow_hive_opt.hive.rules.static_pruning import prune_static
from airflow_hive_opt.hive.tasks import Task
from airflow_hive_opt.statement.settings import Settings

GRAPH_RULES: tuple[Callable[[OperatorGraph], None], ...] = (
    propagate_filters,  # a filter is copied to other inputs of a join, through equal keys
    fold_constants,  # conjuncts that constants decide are removed
    push_predicates,  # conjuncts move towards their scans
    fold_constants,  # once more, with the constants of the filters that have moved
    prune_static,  # the statement's own conditions select partitions
    group_sorted,  # sorted buckets are aggregated in the mapper
    convert_hinted,  # MAPJOIN hints
    use_buckets,  # map joins of bucketed tables join bucket by bucket
    order_joins,  # STREAMTABLE hints
    deduplicate,  # removes a shuffle if the rows are already shuffled by its keys
    correlate,  # joins and group-bys on the same keys run in one job
)
TASK_RULES: tuple[Callable[[list[Task], Settings], list[Task]], ...] = (
    convert_joins,  # joins with small tables become map joins
    convert_sort_merge,  # a sort-merge join may run as a map join
)

__all__ = ["GRAPH_RULES", "TASK_RULES"]
