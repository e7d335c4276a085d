"""Rewrites correlated queries into SQL that makes Spark shuffle and scan a table once.

Spark omits a shuffle if one operator's partitioning serves the next, but it reads and shuffles a
table again for every operator that needs it. Hive's Correlation Optimizer merges jobs; on Spark,
different SQL has the same effect. :func:`rewrite` returns it, rule by rule.

An example is TPC-H's Q17, whose subquery computes for each row of ``lineitem`` the average quantity
of its part:

1. ``blocks`` represents each SELECT with its FROM items and its conjuncts.
2. ``lookups`` finds ``l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey =
   p_partkey)``: a second read of a table by key.
3. ``anchors`` finds the scan that can replace the second read: ``p_partkey = l_partkey``, so the
   block's own ``lineitem`` has the same key.
4. ``cost`` estimates the gain, from sizes and shape.
5. ``self_join_window`` adds ``avg(l_quantity) OVER (PARTITION BY l_partkey)`` to that scan and puts
   the window's value in the subquery's place. Both edits change the user's text.

The other rules are ``aggregate_once``, ``merged_aggregates`` and ``shared_scan``; ``rewrite`` has
their order. ``whole_statement`` checks the statement before any rule. ``join_below``,
``windowed_read`` and ``dropping`` are steps of rules, and ``expressions`` says which expressions
they may move. Two modules are separate: ``join_elimination`` removes joins that only pruned
partitions, and ``broadcast_hints`` adds hints by Hive's size settings. ``example`` has a function
for doctests.

A rule rewrites only what it fully understands. For a shape that it found and did not rewrite, it
returns a reason from ``refusals``.
"""

from __future__ import annotations

from airflow_hive_opt.rewriting.refusals import Refusal
from airflow_hive_opt.rewriting.rewrite import AGGREGATE_ONCE, Rewriting, query_of, rewrite

__all__ = ["AGGREGATE_ONCE", "Refusal", "Rewriting", "query_of", "rewrite"]
