"""Looks up tables and partitions: Spark's catalog, Spark Connect, or Thrift.

``spark_catalog`` and ``connect_catalog`` serve the planner. ``remote_metastore`` chooses where the
local task looks up partitions. ``table_facts`` and ``statistics`` read descriptions of tables,
``work`` counts calls.
"""
