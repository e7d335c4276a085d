"""Hive's planner: from HiveQL to the stages that Hive 2.3 would run (MapReduce, without CBO).

The life of a query, in the order of Hive's own compiler:

1. ``parser`` (with ``lexer``, ``expression_parser``, ``hints``) reads the text by Hive's grammar
   into the frozen trees of ``syntax``.
2. ``generate`` makes the operator graph of ``operators``, block by block: ``joins`` puts the
   joins of ``join_tree`` into ReduceSinks and Joins, ``subqueries`` turns IN and EXISTS into joins,
   ``bodies``, ``aggregate`` and ``sinks`` add what stands after FROM. ``names`` looks every name
   up; here Hive rejects what it rejects.
3. The graph rules of ``planner.rules`` rewire the graph: filters sink, constants fold, hinted
   joins become map joins, ReduceSinks on the same keys merge.
4. ``tasks`` cuts the graph where a job ends; the task rules turn joins into map joins and
   Conditionals.
5. ``compiler`` runs all of this and adds local work, moves and the fetch; ``facts``, ``explain``
   and ``drawing`` show the result.
"""
