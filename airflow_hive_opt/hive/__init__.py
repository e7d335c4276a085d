"""What would Hive do? From HiveQL to the stages that Hive 2.3 would run (MapReduce, without CBO).

Each step follows one of Hive's own compiler and rejects what Hive rejects. Follow
``SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE a.key > '5'``:

1. ``parser`` reads the text by Hive's grammar into the frozen trees of ``parser.syntax``.
2. ``generate`` makes the operator graph of ``graph``, block by block: TS a, TS b, a FIL ``key IS
   NOT NULL`` and a RS on each, the JOIN, the FIL of WHERE, SEL and FS.
3. ``rules.GRAPH_RULES`` rewire the graph: ``operator_pushdown`` moves ``key > '5'`` to TS a and,
   through the equal keys, a copy of it to TS b. The other rules find nothing here.
4. ``tasks`` cuts the graph where a job ends: all of it is one job.
5. ``rules.TASK_RULES``: ``automatic_map_join`` finds b small, so the JOIN becomes a MAPJOIN and the
   job needs no reducer. A LocalWork reads b before it.
6. ``compiler`` runs all of this, adds the fetch and numbers the stages. ``explain`` shows them.
"""
