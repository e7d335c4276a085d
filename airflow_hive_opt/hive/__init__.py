"""Hive's compiler: from HiveQL to the stages that Hive 2.3 runs (MapReduce, without CBO).

Each step follows one step of Hive's own compiler and rejects what Hive rejects. The example is
``SELECT a.key FROM src a JOIN src1 b ON a.key = b.key WHERE a.key > '5'``:

1. ``parser`` parses the text by Hive's grammar into the immutable trees of ``parser.syntax``.
2. ``generate`` builds the operator graph of ``graph``, block by block: TS a, TS b, a FIL ``key IS
   NOT NULL`` and an RS on each, the JOIN, the FIL of WHERE, SEL and FS.
3. ``rules.GRAPH_RULES`` change the graph. ``operator_pushdown`` moves ``key > '5'`` to TS a and,
   through the equal keys, a copy of it to TS b. The other rules do not apply here.
4. ``tasks`` cuts the graph into tasks where a job ends. This graph is one job.
5. ``rules.TASK_RULES``: ``automatic_map_join`` finds that b is small, so the JOIN becomes a MAPJOIN
   and the job needs no reducer. A LocalWork reads b before the job.
6. ``compiler`` runs these steps, adds the fetch and numbers the stages. ``explain`` prints them.
   ``example`` has functions for doctests.
"""
