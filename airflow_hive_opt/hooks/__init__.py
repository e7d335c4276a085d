"""Airflow hooks: ``hive_metastore`` makes a Thrift client of a connection."""
