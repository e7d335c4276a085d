"""Airflow hooks: ``hive_metastore`` for Thrift or AWS Glue, ``iceberg_catalog`` for Iceberg."""
