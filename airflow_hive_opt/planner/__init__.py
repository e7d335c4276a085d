"""The planner: from SQL text to decisions, without Spark and without Airflow.

The life of a query, module by module:

1. ``parse``: sqlglot's Hive dialect (or its Spark dialect) makes a syntax tree. Conditions and
   subqueries remember their place in the text, so that later rewritings cut and splice what the
   user wrote instead of writing it anew.
2. ``resolve`` (with ``scope`` and ``conditions``): names are looked up in a ``catalog``; out come
   the frozen query blocks of ``query``. Unknown and ambiguous names stop here, with line and
   column.
3. ``build``: blocks become ``operators``: scans, filters, joins, a sink.
4. ``rules``: one rule a file. ``predicate_pushdown`` moves conditions towards their scans as far
   as outer joins allow; ``partition_pruning`` decides for every scan of a partitioned table
   whether small tables' keys can choose its partitions, and gives a ``reasons`` code.
5. ``plan`` ties this together; ``explain`` shows it.
"""
