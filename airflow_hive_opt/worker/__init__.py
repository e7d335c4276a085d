"""The local task in the Airflow worker's own process, without a JVM.

It reads the keys of small tables from their files with PyArrow, and evaluates conditions with
DuckDB. Its one rule: keys may be too many, never too few. A condition that DuckDB does not evaluate
exactly as Spark, whatever Spark's settings are, is left out. If too little is left to choose keys,
it raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`, and Spark does the local task.

1. ``local_task`` runs the stage. ``planning`` plans the statement, if no setting (``settings``)
   changes its values; ``sizes`` measures small tables.
2. ``engine`` collects keys (``key_query``, ``keys``) and finds the partitions that fulfil
   conditions (``partition_names``).
3. Both translate a key source's SQL to DuckDB's (``translation``), load its tables (``tables``)
   into a ``database`` in memory, and evaluate it there.
4. ``described_keys`` says on what the keys of a query depend, for key sets.
5. ``files`` has the rows of a table's files, as Spark reads them; ``lakes`` those of tables that
   keep their own list of files. ``types`` and ``casts`` say which values compare exactly.
   ``unanswered`` has the errors that say what the worker does not support.
"""
