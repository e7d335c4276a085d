"""Airflow hooks.

``hive_metastore`` is for Thrift or AWS Glue, ``iceberg_catalog`` for Iceberg. ``pruned_sql`` runs
the statements of Airflow's SQL operators.
"""
