"""AWS Glue's Data Catalog: ``metastore`` is the client.

``connection`` calls Glue, ``expression`` writes its filters.
"""
