"""AWS Glue's Data Catalog: ``metastore`` is the client, ``expression`` writes its filters."""
