"""Iceberg tables: ``catalog`` is the client, ``partitions`` reads a table's manifests."""
