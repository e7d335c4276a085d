"""EXPLAIN: what is pruned and what Hive would do, together.

``plan_text`` shows both as text and as JSON. ``partition_sink`` says which of Hive's stages makes a
list of partitions and which reads it (HIVE-5119); ``on_spark`` what Hive's joins and hints are on
Spark.
"""
