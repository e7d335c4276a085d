"""The rules, in the order in which they run.

``TREE_RULES`` change one operator tree each; partition pruning then decides over all trees of
the statement together.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.planner.operators import Operator
from airflow_hive_opt.planner.rules.partition_pruning import prune_partitions
from airflow_hive_opt.planner.rules.predicate_pushdown import push_down

TREE_RULES: tuple[Callable[[Operator], Operator], ...] = (push_down,)

__all__ = ["TREE_RULES", "prune_partitions"]
