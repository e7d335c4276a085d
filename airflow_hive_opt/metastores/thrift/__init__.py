"""A Hive Metastore over Thrift: ``metastore`` is the client.

``connection`` calls it with retries, ``partition_filter`` writes its filters.
"""
