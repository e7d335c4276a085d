"""Prints Hive's plan: ``stage_text`` as EXPLAIN, ``graph_text`` as a graph, ``facts`` as JSON."""
