"""The local task in the Airflow worker's own process, without a JVM.

It reads the keys of small tables from their files with PyArrow, and evaluates conditions with
DuckDB. Its one rule: keys may be too many, never too few. A condition that DuckDB does not evaluate
exactly as Spark, whatever Spark's settings are, is left out. If too little is left to choose keys,
it raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`, and Spark does the local task.

- ``local_task``: the steps. ``planning`` plans the statement, ``engine`` reads the keys, ``sizes``
  finds sizes, ``settings`` names settings under which Spark reads other values.
- ``files``: the rows of a table's files, as Spark reads them.
- ``lakes``: tables that keep their own list of files.
- ``translation``: a key source's SQL as SQL of DuckDB.
- ``tables``: the tables of a query, loaded into DuckDB.
- ``key_query``: the ``keys`` of a source, read in a ``database`` of DuckDB.
- ``partition_names``: the partitions that fulfil conditions.
- ``types``, ``casts``: the types whose values compare as in Spark, and casts to them.
"""
