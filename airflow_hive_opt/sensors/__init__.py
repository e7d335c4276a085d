"""Airflow sensors.

``partition_descriptor`` waits for a descriptor, ``required_partitions`` for the partitions that the
keys require. ``deferring`` moves their wait to the triggerer.
"""
