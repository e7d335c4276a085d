"""Metastores: where tables and their partitions are looked up without Spark.

- ``metastore`` is the protocol, and the choice of the cheapest call. ``partitions``
  converts between a partition's name and its values. ``required`` tells which required partitions
  are missing. ``work`` counts calls.
- ``thrift`` is a Hive Metastore, ``glue`` is AWS Glue, ``iceberg`` is a catalog of Iceberg tables.
  ``hive_tables`` converts Hive's tables for the first two.

A new metastore is one new module or package with a subclass of ``Remote``. The local task chooses
it in ``spark/catalog/remote_metastore.py``.
"""
