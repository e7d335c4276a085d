"""The two stages on Spark: the local task collects keys and prunes, the map join runs.

Each package imports only the packages above it:

- ``session``: opens a session, embedded or on Spark Connect. It also holds settings, errors and
  progress. ``session.spark_compat`` holds the differences between versions of Spark.
- ``keys``: the key set of a small table, and partition names as a relation.
- ``catalog``: Spark's catalog as the planner's catalog and as a metastore.
- ``local_task``: the first stage. ``map_join``: the second stage.
- ``application``: runs both stages. The operators, ``spark-submit`` and the CLI start it.
"""
