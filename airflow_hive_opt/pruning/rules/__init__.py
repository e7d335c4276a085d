"""Rules that decide what Spark may leave unread, on the frozen operator trees of a statement.

1. ``predicate_pushdown`` moves conditions towards their scans, as far as outer joins allow.
2. ``partition_pruning`` decides for each scan of a partitioned table whether the keys of small
   tables can choose its partitions, or gives a reason. ``key_sources`` finds the small tables,
   ``skeletons`` what is needed of them, and ``weakening`` the part of a condition that still holds
   when only some of its columns are known.
3. ``key_predicates`` does the same for a data column: its keys become a condition on the scan.
"""
