"""Query blocks to Hive's operator graph, before any rule (Hive's ``SemanticAnalyzer.genPlan``).

``generator`` goes through the blocks and their FROM clauses. Each file adds one part of a block,
and imports only files above it:

- ``names`` (with ``functions``) looks every name up; ``generation`` holds what is known so far.
- ``join_tree`` orders the joins of a FROM clause; ``joins`` makes ReduceSinks and Joins of it.
- ``lateral_views`` makes table functions; ``where`` makes filters, and joins of the subqueries that
  ``subquery_joins`` finds in IN and EXISTS.
- ``bodies`` makes what follows FROM: ``aggregate`` the group-by, ``sinks`` the FileSinks.
"""
