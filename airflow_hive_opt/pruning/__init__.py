"""What may Spark leave unread? From SQL text to a decision for each scan.

The answer must hold for everything that Spark accepts. What is not understood is left to Spark.

1. ``resolve`` (with ``scope``, ``relations``, ``ctes``, ``views``, ``projections``,
   ``subqueries`` and ``conditions``) looks names up in a catalog and gives the frozen query blocks
   of ``query``. It rejects unknown and ambiguous names with line and column.
2. ``build`` makes trees of ``operators``: scans, filters, joins, a sink. ``draw`` shows them.
3. ``rules.predicate_pushdown`` moves conditions towards their scans.
4. ``rules.partition_pruning`` and ``rules.key_predicates`` decide for each scan which small tables'
   keys can choose its partitions or restrict a data column. ``decisions`` holds what they decide,
   ``reasons`` why a scan stays whole.

:func:`airflow_hive_opt.pruning.plan.plan` runs these steps.
"""
