"""A Hive Metastore over Thrift: ``metastore`` is the client."""
