"""Hive's rules, in the order of Hive's own optimizers.

``GRAPH_RULES`` change the operator graph. ``TASK_RULES`` change the tasks that the graph is cut
into.
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
    propagate_filters,
    fold_constants,
    push_predicates,
    fold_constants,
    prune_static,
    group_sorted,
    convert_hinted,
    use_buckets,
    order_joins,
    deduplicate,
    correlate,
)
TASK_RULES: tuple[Callable[[list[Task], Settings], list[Task]], ...] = (
    convert_joins,
    convert_sort_merge,
)

__all__ = ["GRAPH_RULES", "TASK_RULES"]
