"""Decides for each scan of a statement which data Spark may leave unread.

The decisions must be correct for every statement that Spark accepts. A statement, or a part of
one, that the planner does not understand passes through to Spark.

1. ``resolve`` (with ``scope``, ``relations``, ``ctes``, ``views``, ``projections``,
   ``output_columns``, ``subqueries``, ``subquery_joins``, ``conditions`` and ``substitution``)
   looks names up in a catalog and returns the frozen query blocks of ``query``. It rejects unknown
   and ambiguous names with line and column.
2. ``operators`` builds trees of scans, filters, joins and a sink, and draws them.
3. ``rules.RULES`` are the rules in their order: they move conditions towards their scans, and then
   decide for each scan which small tables' keys can prune its partitions or restrict a data column.
   ``decisions`` has the plan and the data classes of the decisions, ``reasons`` the reasons why a
   scan reads the whole table, ``advice`` what to do. ``row_level`` is for MERGE, UPDATE and DELETE,
   ``scan_way`` decides how Spark finds the partitions.

``plan`` runs these steps. ``hops`` follows keys from one large table to the next, once the local
task knows which part of a table is read. ``example`` has functions for doctests.
"""
