"""Airflow triggers: ``partitions`` waits in the triggerer for what the sensors wait for."""
