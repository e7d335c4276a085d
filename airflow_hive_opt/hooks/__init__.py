"""Airflow hooks.

- ``hive_metastore`` is for Thrift or AWS Glue, ``iceberg_catalog`` for Iceberg.
- ``pruned_sql`` runs the statements of Airflow's SQL operators. ``sql_options`` are those of its
  connection. ``sql_connection`` runs a statement, ``sql_cursor`` has its rows, ``sql_statements``
  what it leaves, and ``sql_script`` says what has run if one of several fails.
"""
