"""The two stages on Spark: the local task collects keys and prunes, the map join runs.

Each package imports only those above it:

- ``session``: opens a session, embedded or of Spark Connect; settings, errors, progress. What
  differs between versions of Spark is in ``session.spark_compat``.
- ``keys``: the key set of a small table, and partition names as a relation.
- ``narrowing``: the statement's text with each pruned scan narrowed to its partitions.
- ``catalog``: Spark's catalog as a catalog and as a metastore.
- ``local_task``: the first stage. ``map_join``: the second.
- ``application``: both stages as one run, as the operators, ``spark-submit`` and the CLI start it.
"""
