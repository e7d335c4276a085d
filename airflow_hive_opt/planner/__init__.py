"""The planner: from SQL text to decisions and stages, without Spark and without Airflow.

Two plans are made of one statement, because they answer two questions.

*What may Spark leave unread?* :func:`plan.plan` decides which partitions small tables' keys can
choose. It must hold for everything that Spark accepts, so it is careful, and passes on what it
does not know:

1. ``parse``: sqlglot's Hive dialect (or its Spark dialect) makes a syntax tree. Conditions and
   subqueries remember their place in the text, so that later rewritings cut and splice what the
   user wrote instead of writing it anew.
2. ``resolve`` (with ``scope`` and ``conditions``): names are looked up in a ``catalog``; out come
   the frozen query blocks of ``query``. Unknown and ambiguous names stop here, with line and
   column.
3. ``build``: blocks become ``operators``: scans, filters, joins, a sink.
4. ``rules.TREE_RULES``: ``predicate_pushdown`` moves conditions towards their scans as far as
   outer joins allow; ``partition_pruning`` decides for every scan of a partitioned table whether
   small tables' keys can choose its partitions, and gives a ``reasons`` code.

*What would Hive do?* :func:`explain.explain` shows the stages that Hive 2.3 would run, and
rejects what Hive rejects. ``hive`` follows Hive's own compiler step by step; its ``__init__``
narrates them. Follow ``SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE a.key > '5'``:

1. ``hive.generate`` makes TS a, TS b, a FIL ``key IS NOT NULL`` and a RS on each, the JOIN, the
   FIL of WHERE, SEL and FS.
2. ``rules.GRAPH_RULES``, in order: ``filter_propagation`` and ``constant_folding`` find nothing;
   ``operator_pushdown`` moves ``key > '5'`` to TS a and, through the equal keys, a copy of it to
   TS b; ``static_pruning``, ``sorted_group_by``, ``hinted_map_join``, ``bucket_map_join``,
   ``join_order``, ``reduce_sink_deduplication`` and ``correlation`` have nothing to do here.
3. ``hive.tasks`` cuts the graph: all of it is one job.
4. ``rules.TASK_RULES``: ``automatic_map_join`` finds b small, so the JOIN becomes a MAPJOIN and
   the job needs no reducer; b is read by a LocalWork before it. ``partition_sink`` then says
   which LocalWork would make a list of partitions, and which scan read it.
5. ``hive.compiler`` adds the fetch and numbers the stages.

``airflow-hive-opt explain --stage-by-rule`` shows the graph after every rule that changed it.
"""
