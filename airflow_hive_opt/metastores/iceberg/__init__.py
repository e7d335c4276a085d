"""Iceberg tables: ``catalog`` is the client, ``partitions`` reads a table's manifests.

``layout`` says how a table groups its rows into files.
"""
