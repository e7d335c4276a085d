"""Correlated queries in SQL that makes Spark shuffle and scan once.

Spark leaves out a shuffle where one operator's partitioning serves the next, but reads and
shuffles a table again for every operator that needs it. Hive's Correlation Optimizer merges jobs;
on Spark the same is won by other SQL: :func:`rewrite` gives it, rule by rule.

Follow TPC-H's Q17, whose subquery asks for each row of ``lineitem`` the average quantity of its
part:

1. ``blocks`` shows each SELECT with its FROM items and its conjuncts.
2. ``lookups`` finds ``l_quantity < (SELECT 0.2 * avg(l_quantity) FROM lineitem WHERE l_partkey =
   p_partkey)``: a second read of a table by key.
3. ``anchors`` finds the read that it can be answered from: ``p_partkey = l_partkey``, so the
   block's own ``lineitem`` has the same key.
4. ``cost`` judges it, from sizes and shape.
5. ``self_join_window`` puts ``avg(l_quantity) OVER (PARTITION BY l_partkey)`` on that read and the
   window's value in the subquery's place. Both are spliced into the user's text.

A rule takes only what it fully understands; what it found and did not take comes back with a
reason from ``refusals``.
"""

from __future__ import annotations

from airflow_hive_opt.rewriting.refusals import Refusal
from airflow_hive_opt.rewriting.rewrite import (
    AGGREGATE_ONCE,
    Rewriting,
    query_of,
    rewrite,
)

__all__ = ["AGGREGATE_ONCE", "Refusal", "Rewriting", "query_of", "rewrite"]
