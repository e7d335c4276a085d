"""Prunes the partitions of star joins before they start: HIVE-5119 in Airflow, on Spark.

- ``statement`` parses a statement. ``pruning`` decides which scans the keys of small tables prune,
  ``restriction`` writes the found partitions into it, ``rewriting`` rewrites correlated queries.
- ``hive`` makes Hive's plan, and ``explain`` prints it with the decisions.
- ``metastores`` looks up tables and partitions without Spark.
- ``local_task`` collects keys and finds partitions, in the Airflow ``worker`` or on ``spark``,
  which also runs the join. ``documents`` are the files that these stages exchange.
- ``operators``, ``sensors``, ``triggers``, ``hooks``, ``links``, ``decorators`` and ``task_groups``
  are Airflow's parts, and ``provider`` is what they share. ``plugins`` serves the ``pages`` of
  runs.
- ``commands`` is the command line.
"""

__version__ = "0.1.0"
