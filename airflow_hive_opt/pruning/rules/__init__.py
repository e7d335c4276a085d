"""Rules on the frozen operator trees that decide which data Spark may leave unread.

1. ``predicate_pushdown`` moves conditions towards their scans, as far as outer joins allow.
2. ``partition_pruning`` decides for each scan of a partitioned table whether the keys of small
   tables can prune its partitions, or returns a reason. ``key_sources`` finds the small tables,
   ``skeletons`` the blocks in which partition columns are visible, and ``weakening`` the conditions
   that hold for the rows of a relation.
3. ``key_predicates`` does the same for a data column: the keys become a condition on the scan.
"""
