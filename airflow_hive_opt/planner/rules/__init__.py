"""The rules, in the order in which they run.

``TREE_RULES``, partition pruning and key predicates work on the frozen trees that decide what Spark
reads. ``GRAPH_RULES`` work on Hive's operator graph, in the order of Hive's optimizer;
``TASK_RULES`` on the tasks that the graph is cut into, in the order of Hive's physical optimizer.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.planner.hive.operators import OperatorGraph
from airflow_hive_opt.planner.hive.tasks import Task
from airflow_hive_opt.planner.operators import Operator
from airflow_hive_opt.planner.rules.automatic_map_join import convert_joins
from airflow_hive_opt.planner.rules.bucket_map_join import use_buckets
from airflow_hive_opt.planner.rules.constant_folding import fold_constants
from airflow_hive_opt.planner.rules.correlation import correlate
from airflow_hive_opt.planner.rules.filter_propagation import propagate_filters
from airflow_hive_opt.planner.rules.hinted_map_join import convert_hinted
from airflow_hive_opt.planner.rules.join_order import order_joins
from airflow_hive_opt.planner.rules.key_predicates import find_key_predicates
from airflow_hive_opt.planner.rules.operator_pushdown import push_predicates
from airflow_hive_opt.planner.rules.partition_pruning import prune_partitions
from airflow_hive_opt.planner.rules.predicate_pushdown import push_down
from airflow_hive_opt.planner.rules.reduce_sink_deduplication import deduplicate
from airflow_hive_opt.planner.rules.sort_merge_to_map_join import convert_sort_merge
from airflow_hive_opt.planner.rules.sorted_group_by import group_sorted
from airflow_hive_opt.planner.rules.static_pruning import prune_static
from airflow_hive_opt.planner.settings import Settings

TREE_RULES: tuple[Callable[[Operator], Operator], ...] = (push_down,)
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

__all__ = ["GRAPH_RULES", "TASK_RULES", "TREE_RULES", "find_key_predicates", "prune_partitions"]
