"""Where tables and partitions are looked up: Spark's catalog, Spark Connect, or Thrift."""
