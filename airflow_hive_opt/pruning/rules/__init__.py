"""The rules that decide which data Spark may leave unread, in their order.

Each rule gets a plan and returns a new one. ``RULES`` has the rules of ``disjunctions``,
``predicate_pushdown``, ``partition_pruning``, ``row_level_keys`` and ``key_predicates``. The other
modules are steps of rules:

- ``transitive_conditions`` and ``into_subqueries`` are steps of ``predicate_pushdown``.
- ``weakening`` finds the conditions that hold for the rows of a relation. ``skeletons`` finds the
  blocks in which partition columns are visible. ``key_sources``, with ``listed_partitions``, finds
  the small tables and makes their key queries. Both rules that choose keys use them.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_hive_opt.pruning.decisions import Plan
from airflow_hive_opt.pruning.rules.disjunctions import add_implied
from airflow_hive_opt.pruning.rules.key_predicates import find_key_predicates
from airflow_hive_opt.pruning.rules.partition_pruning import prune_partitions
from airflow_hive_opt.pruning.rules.predicate_pushdown import push_down
from airflow_hive_opt.pruning.rules.row_level_keys import drop_unusable_keys
from airflow_hive_opt.statement.settings import Settings

Rule = Callable[[Plan, Settings], Plan]

RULES: tuple[Rule, ...] = (
    add_implied,  # an OR over several tables implies conditions on one of them
    push_down,  # conditions move towards their scans, as far as outer joins allow
    prune_partitions,  # the keys of small tables select partitions, or a reason says why not
    drop_unusable_keys,  # MERGE, UPDATE and DELETE can't use all keys
    find_key_predicates,  # the keys of small tables become a condition on a data column
)

__all__ = ["RULES", "Rule"]
