"""Metastores: where tables and their partitions are looked up without Spark.

- ``metastore`` is the protocol, and the choice of the cheapest call. ``partitions`` and
  ``partition_names`` convert between a partition's name and its values. ``required`` tells which
  required partitions are missing. ``work`` counts calls.
- ``thrift`` is a Hive Metastore, ``glue`` is AWS Glue, ``json_file`` is a file for planning
  offline. ``iceberg`` and ``delta`` read the metadata of such tables for sensors; ``lakes`` is
  their protocol.
- ``looked_up`` is the base of ``thrift`` and ``glue``, which looks up each table once.
  ``hive_tables`` converts Hive's tables, with what Spark keeps in their properties
  (``spark_properties``), and ``storage`` says how their files are read.
- ``statement_catalog`` gives the planner a statement's tables from a metastore alone.

A new metastore is one new module or package with the methods of the protocol. The local task
chooses it in ``spark/catalog/remote_metastore.py``.
"""
