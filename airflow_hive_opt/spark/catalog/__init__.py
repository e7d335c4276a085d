"""Looks up tables and partitions: Spark's catalog, Spark Connect, or Thrift.

``spark_catalog`` and ``connect_catalog`` serve the planner. ``remote_metastore`` chooses where the
local task looks up partitions. ``resolved_names`` finds what all names of a statement stand for,
with ``session_definitions`` or ``connect_definitions``. ``table_facts`` and ``statistics`` read
descriptions of tables, ``work`` counts calls.
"""
