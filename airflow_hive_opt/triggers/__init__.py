"""Airflow triggers.

``partitions`` waits for what sensors wait for. ``application`` follows an application on a cluster,
``connect_statement`` a statement on a Spark Connect server; ``remote_work`` decides when they stop
it.
"""
