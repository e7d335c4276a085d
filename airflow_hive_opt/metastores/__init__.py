"""Metastores: where tables and their partitions are looked up without Spark.

- ``metastore`` is the protocol, and the choice of the cheapest call. ``partitions`` and
  ``partition_names`` convert between a partition's name and its values. ``required`` tells which
  required partitions are missing. ``work`` counts calls.
- ``thrift`` is a Hive Metastore, ``glue`` is AWS Glue, ``iceberg`` is a catalog of Iceberg tables,
  ``json_file`` is a file for planning offline.
- ``looked_up`` is what the first two share: each table once. ``hive_tables`` converts Hive's
  tables, with what Spark keeps in their properties (``spark_properties``), and ``storage`` says how
  their files are read.
- ``statement_catalog`` gives the planner a statement's tables from a metastore alone.

A new metastore is one new module or package with the methods of the protocol. The local task
chooses it in ``spark/catalog/remote_metastore.py``.
"""
