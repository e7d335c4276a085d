"""Metastores: where tables and their partitions are looked up without Spark.

- ``metastore`` is the protocol, and the choice of the cheapest call. ``partitions`` and
  ``partition_names`` convert between a partition's name and its values. ``required`` tells which
  required partitions are missing. ``work`` counts calls, ``time_limit`` ends them.
- ``thrift`` is a Hive Metastore, ``glue`` is AWS Glue. ``json_file`` is a file for planning
  offline: a ``Metastore``, but no ``Remote``.
- ``looked_up`` is what the first two share: each table once. ``hive_tables`` converts Hive's
  tables, with what Spark keeps in their properties (``spark_properties``), and ``storage`` says how
  their files are read.
- ``statement_catalog`` gives the planner a statement's tables from a metastore alone.
- Sensors read tables that keep their own list of files: ``lakes`` says what such a client answers,
  ``iceberg`` is a catalog of Iceberg tables, ``delta`` reads the log of a Delta table.

``CONTRIBUTING.md`` lists what another metastore needs.
"""
