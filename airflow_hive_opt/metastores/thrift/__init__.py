"""A Hive Metastore over Thrift: ``metastore`` is the client.

``connection`` calls it with retries, ``partition_filter`` writes its filters. ``transport`` opens
the way to one of the ``addresses``, as ``security`` says: over TLS, and over SASL (``sasl``) with
``kerberos``, a ``token`` of Hive's or a password.
"""
