"""Looks up tables and partitions: Spark's catalog, Spark Connect, or Thrift.

``spark_catalog`` and ``connect_catalog`` serve the planner. ``remote_metastore`` chooses where the
local task looks up partitions. ``statistics`` reads sizes, ``work`` counts calls.
"""
