"""Airflow triggers: ``partitions`` waits for what sensors wait for, ``application`` for Spark."""
