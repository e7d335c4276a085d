"""Looks up tables and partitions: Spark's catalog, Spark Connect, or Thrift."""
