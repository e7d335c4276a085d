"""The local task in the Airflow worker's own process, without a JVM.

It reads the keys of small tables from their files with PyArrow, and evaluates conditions with
DuckDB. Its one rule: keys may be too many, never too few. A condition that DuckDB does not evaluate
exactly as Spark, whatever Spark's settings are, is left out. Where what is left says nothing, it
raises :class:`~airflow_hive_opt.worker.unanswered.Unanswered`, and Spark does the local task.

- ``files``: the rows of a table's files, as Spark reads them.
- ``lakes``: tables that keep their own list of files.
- ``translation``: a key source's SQL as SQL of DuckDB.
- ``tables``: the tables of a query, loaded into DuckDB.
- ``key_query``: the keys of a source.
- ``partition_names``: the partitions that fulfil conditions.
"""
