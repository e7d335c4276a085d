"""Data that the stages exchange: partitions, the descriptor, the report.

- ``partitions`` and ``partition_names`` convert between names and values; ``metastore`` states what
  the local task asks, ``thrift_metastore`` asks a real one, ``partition_filter`` writes filters;
  ``glue_metastore`` asks AWS Glue, ``glue_expression`` writes its expressions.
- ``descriptor`` is the partition list, ``report`` a run's summary, ``binding`` the tables and
  settings for which a list is valid, ``gates`` the limits before the join.
- ``required`` is what sensors wait for, ``required_keys`` the keys that a local task leaves for
  them, ``key_tuples`` how documents write keys.
- ``iceberg_partitions`` finds an Iceberg table's required partitions, ``iceberg_catalog`` reads the
  catalog of the table.
- ``documents`` is the common format of these files, ``storage`` writes them, ``cleaning`` deletes
  them.

This package needs neither Spark nor Airflow.
"""
