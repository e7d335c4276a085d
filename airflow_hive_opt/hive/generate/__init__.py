"""Builds Hive's operator graph of query blocks, before any rule (``SemanticAnalyzer.genPlan``).

``generator`` visits the blocks and their FROM clauses. Each other module adds one part of a block:

- ``names`` resolves names; ``generation`` holds the state of the generation.
- ``join_tree`` orders the joins of a FROM clause, ``join_merging`` merges joins on the same keys,
  and ``joins`` makes ReduceSinks and Joins of them.
- ``lateral_views`` makes table functions. ``where`` makes filters, and joins of the subqueries that
  ``subquery_joins`` finds in IN and EXISTS.
- ``bodies`` makes the clauses after FROM: ``aggregate`` the group-by, ``select_list`` the SELECT
  list and the window functions, ``sinks`` the FileSinks.
"""
