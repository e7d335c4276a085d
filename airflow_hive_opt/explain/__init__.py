"""EXPLAIN: the partition pruning of a statement and Hive's plan for it, in one output.

``plan_text`` writes both as text and as JSON. ``partition_sink`` finds the stage of Hive's plan
that makes a partition list and the stage that reads it (HIVE-5119). ``on_spark`` describes how
Spark runs Hive's joins and hints. ``stages`` has Hive's stages in short, for reports. ``example``
has a function for doctests.
"""
