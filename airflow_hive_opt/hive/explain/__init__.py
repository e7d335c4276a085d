"""Hive's plan shown: ``stage_text`` as EXPLAIN, ``graph_text`` as a graph, ``facts`` as JSON."""
